// OUT/report.html: what a campaign did and found, on one page that needs no network and no script.
#pragma once

#include <string>

#include "fuzz/campaign_lines.h"

namespace gatherfuzz {

std::string campaign_report(const CampaignOptions& options, const CampaignFigures& figures,
                            const CampaignHistory& history);

}  // namespace gatherfuzz
