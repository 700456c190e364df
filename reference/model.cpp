#include "reference/model.h"

namespace gatherfuzz::reference {

template class BasicModel<float>;
template class BasicModel<double>;

}  // namespace gatherfuzz::reference
