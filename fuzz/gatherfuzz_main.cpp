// The command line of `gatherfuzz`.
#include <CLI/CLI.hpp>
#include <limits>

#include "fuzz/bench.h"
#include "fuzz/campaign.h"
#include "fuzz/check.h"
#include "fuzz/corpus_command.h"
#include "fuzz/exit_code.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "fuzz/shrink_command.h"
#include "fuzz/train.h"
#include "fuzz/version.h"
#include "impl/training/flag_text.h"

namespace gatherfuzz {

namespace {

// What the command line says, as words; the commands' options are made of it.
struct Words {
  std::string runtimes;
  std::vector<std::string> set;
  std::string time, fault, engine;
  std::string seed = "1";
  std::string reference = "on", checks = "on";
};

std::vector<RuntimeKind> parse_runtimes(const std::string& text) {
  std::vector<RuntimeKind> runtimes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = std::string_view(text).substr(begin, end - begin);
    const std::optional<RuntimeKind> kind = find_by_name<RuntimeKind>(kRuntimeNames, name);
    if (!kind) {
      throw UsageError("--runtime: expected " + joined_choices(kRuntimeNames) + ", found " + in_quotes(name) +
                       nearest_hint(name, kRuntimeNames));
    }
    runtimes.push_back(*kind);
    begin = end + 1;
  }
  return runtimes;
}

Engine parse_engine(const std::string& word) {
  if (const std::optional<Engine> engine = find_by_name<Engine>(kEngineNames, word)) return *engine;
  throw UsageError("--engine: expected " + joined_choices(kEngineNames) + ", found " + in_quotes(word) +
                   nearest_hint(word, kEngineNames));
}

bool parse_on_off(const std::string& option, const std::string& word) {
  constexpr std::string_view kNames[] = {"off", "on"};
  if (word != "on" && word != "off")
    throw UsageError(option + ": expected on or off, found " + in_quotes(word) + nearest_hint(word, kNames));
  return word == "on";
}

class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", full_version_text());
    app_.footer(
        "Exit codes: 0 as expected, 1 not, 2 bad file or command line, 3 all skipped, 4 internal, 130 "
        "Ctrl-C.");
    add_check();
    add_train();
    add_fuzz();
    add_shrink();
    add_corpus();
    add_bench();
    allow_extras(app_);
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // help and version
      std::ostringstream text;
      app_.exit(asked, text, text);
      std::string lines = text.str();
      while (lines.ends_with('\n')) lines.pop_back();
      print_result(lines);
      return kExitAsExpected;
    } catch (const CLI::ParseError& error) {
      throw UsageError(error.what());
    }
    CLI::App* command = &app_;
    std::string name;  // "corpus add"
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      name += (name.empty() ? "" : " ") + command->get_name();
    }
    complain_of_unknown_words(*command, name);
    if (const auto names = command_names(*command); !names.empty())
      throw UsageError(name + (name.empty() ? "" : ": ") + "expected a command: " + joined(names));
    return run_command(name);
  }

 private:
  // CLI11 would name an unknown word, but not what it may have been.
  static void allow_extras(CLI::App& app) {
    app.allow_extras();
    for (CLI::App* command : app.get_subcommands({})) allow_extras(*command);
  }

  CLI::App* add_command(const std::string& name, const std::string& what, const std::string& example) {
    return add_command(app_, name, what, example);
  }

  CLI::App* add_command(CLI::App& to, const std::string& name, const std::string& what,
                        const std::string& example) {
    CLI::App* command = to.add_subcommand(name, what);
    command->footer("Example: gatherfuzz " + example);
    return command;
  }

  void add_set(CLI::App* command) {
    command->add_option("--set", words_.set, "a flag, as name=value; may be given many times")
        ->allow_extra_args(false);
  }

  void add_check() {
    CLI::App* c = add_command("check", "run programs and judge them by every oracle",
                              "check --runtime symbolic,host corpus/seeds");
    c->add_option("FILE", check_.inputs, "program files, folders of *.program files, or - for standard input")
        ->required();
    c->add_option("--runtime", words_.runtimes,
                  "symbolic, host or both, separated by a comma (default: both)");
    c->add_flag("--json", check_.json, "one JSON object a line, as ci/check.schema.json describes it");
    add_set(c);
  }

  void add_train() {
    CLI::App* c = add_command("train", "train a byte-level language model on a file, the reference beside it",
                              "train --text README.md --steps 200 --curve curve.csv");
    c->add_option("--text", train_.text, "the file")->required();
    c->add_option("--steps", train_.steps, "training steps")
        ->check(CLI::Range(1, kMaxTrainingSteps))
        ->capture_default_str();
    add_set(c);
    c->add_option("--runtime", words_.runtimes, "host: the only one with numbers (default)");
    c->add_option("--reference", words_.reference,
                  "on or off (default on): the reference's loss at each step");
    c->add_option("--checks", words_.checks, "on or off (default on): judge every step");
    c->add_option("--curve", train_.curve, "write step,loss,reference_loss to this CSV file");
    c->add_option("--plot", train_.plot, "draw both losses to this SVG file");
    c->add_option("--checkpoint", train_.checkpoint,
                  "a folder that gets DIR/step-N, in safetensors, after the last step");
    c->add_option("--checkpoint-every", train_.checkpoint_every, "and after each so many steps")
        ->check(CLI::Range(1, kMaxTrainingSteps));
    c->add_option("--resume", train_.resume,
                  "go on from this checkpoint, or from the latest in this folder, up to --steps in all; its "
                  "flags hold where --set names none");
  }

  void add_fuzz() {
    CLI::App* c =
        add_command("fuzz", "generate random programs and judge them until one fails",
                    "fuzz --time 45s --fault 'drop op=copy_main_params_to_param_buffer iteration=4+'");
    c->add_option("--runs", fuzz_.runs,
                  "stop after so many programs; 0: replay --corpus, every program on every runtime");
    c->add_option("--time", words_.time, "stop after 45s, 10m, 8h (default 30s, or no limit with --runs)");
    c->add_option("--seed", words_.seed, "of the programs: a number, or a commit of 40 hexadecimal digits")
        ->capture_default_str();
    c->add_option("--engine", words_.engine,
                  "builtin (default), or libfuzzer: its processes choose the programs and run them on the "
                  "first runtime; needs the preset fuzz");
    c->add_option("--jobs", fuzz_.jobs,
                  "worker processes, or processes of libfuzzer; with one, program number n may build on all "
                  "before it, with N on those "
                  "up to number n - " +
                      std::to_string(kOtherRuntimesEvery) + " N")
        ->check(CLI::Range(std::size_t{1}, kMostJobs))
        ->capture_default_str();
    c->add_option("--runtime", words_.runtimes,
                  "the first runs every program, another one program in " +
                      std::to_string(kOtherRuntimesEvery) + " (default symbolic,host)");
    c->add_option("--fault", words_.fault, "plant this fault in every program");
    c->add_option("--corpus", fuzz_.corpus,
                  "a folder of programs to begin with; those with a fault are left out");
    c->add_flag("--keep-going", fuzz_.keep_going, "after a failure; each class and signature is told once");
    c->add_flag(
        "--resume", fuzz_.resume,
        "go on where the campaign in --out was killed or stopped, with the same options; --time counts "
        "from its start");
    c->add_option("--out", fuzz_.out,
                  "the folder of all that is written: report.html, log.jsonl, corpus, failures, state")
        ->capture_default_str();
    add_set(c);
  }

  void add_shrink() {
    CLI::App* c = add_command("shrink", "make a failing program as small as its failure allows",
                              "shrink gatherfuzz-out/failures/zeroed-weights-913eca87.program");
    c->add_option("FILE", shrink_.input, "a program that fails, or - for standard input")->required();
    c->add_option("--runtime", words_.runtimes, "symbolic (default) or host: where it fails");
    c->add_option("--out", shrink_.out,
                  "where the small program goes (default: beside FILE as *.shrunk.program, of - to standard "
                  "output)");
  }

  void add_bench() {
    CLI::App* c = add_command("bench", "measure how fast programs run, on one core", "bench --json");
    c->add_flag("--json", bench_.json, "one JSON object a line: name, value, unit, peer, ratio");
    c->add_option("--corpus", bench_.corpus, "the programs")->capture_default_str();
    c->add_option("--seconds", bench_.seconds, "for each runtime; at least one pass over the programs")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  }

  void add_corpus() {
    CLI::App* corpus = add_command("corpus", "keep folders of programs canonical, distinct and useful",
                                   "corpus check corpus/regressions");
    corpus->require_subcommand(0, 1);
    CLI::App* c = add_command(*corpus, "check", "say what is wrong with the files of a folder",
                              "corpus check corpus/regressions");
    c->add_option("DIR", corpus_folder_, "a folder of *.program files")->required();
    c = add_command(*corpus, "add", "store a program with what it comes to",
                    "corpus add gatherfuzz-out/failures/zeroed-weights-913eca87.program");
    c->add_option("FILE", corpus_add_.input, "a program, or - for standard input")->required();
    c->add_option("--name", corpus_add_.name, "its name (default: CLASS-SIGNATURE of its failure)");
    c->add_option("--dir", corpus_add_.folder, "the folder it goes to")->capture_default_str();
    c = add_command(*corpus, "minimize", "remove programs that reach no host state of their own",
                    "corpus minimize gatherfuzz-out/corpus");
    c->add_option("DIR", corpus_folder_, "a folder of *.program files")->required();
    c = add_command(*corpus, "merge", "add what reaches a host state that nothing in INTO reaches",
                    "corpus merge corpus/found gatherfuzz-out/corpus");
    c->add_option("INTO", corpus_folder_, "a folder; made if it is missing")->required();
    c->add_option("FROM", corpus_from_, "folders of *.program files")->required();
  }

  static std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return names;
  }

  static std::string joined(const std::vector<std::string>& names) {
    return joined_choices(std::vector<std::string_view>(names.begin(), names.end()));
  }

  void complain_of_unknown_words(const CLI::App& command, const std::string& command_name) const {
    const std::vector<std::string> extras = command.remaining();
    if (extras.empty()) return;
    const std::string word = extras.front().substr(0, extras.front().find('='));
    const bool is_option = word.starts_with("-");
    const std::string where = command_name.empty() ? "" : command_name + ": ";
    if (const auto commands = command_names(command); !commands.empty() && !is_option) {
      const std::vector<std::string_view> views(commands.begin(), commands.end());
      throw UsageError(where + "expected a command (" + joined_choices(views) + "), found " +
                       in_quotes(word) + nearest_hint(word, views));
    }
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
      if (!option->get_positional() || option->nonpositional()) names.push_back(option->get_name());
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    throw UsageError(where + "expected " + (is_option ? joined_choices(views) : "no further argument") +
                     ", found " + in_quotes(word) + nearest_hint(word, views));
  }

  int run_command(const std::string& name) {
    catch_interrupts();
    if (name == "bench") return bench(bench_);
    if (name == "corpus check") return corpus_check(corpus_folder_);
    if (name == "corpus add") return corpus_add(corpus_add_);
    if (name == "corpus minimize") return corpus_minimize(corpus_folder_);
    if (name == "corpus merge") return corpus_merge(corpus_folder_, corpus_from_);
    if (name == "train") {
      const bool host_alone = parse_runtimes(words_.runtimes.empty() ? "host" : words_.runtimes) ==
                              std::vector<RuntimeKind>{RuntimeKind::host};
      if (!host_alone) throw UsageError("--runtime: expected host, the runtime with numbers");
      train_.set = parse_settings(words_.set);
      train_.reference = parse_on_off("--reference", words_.reference);
      train_.checks = parse_on_off("--checks", words_.checks);
      return train(train_);
    }
    const std::vector<RuntimeKind> runtimes =
        parse_runtimes(words_.runtimes.empty() ? "symbolic,host" : words_.runtimes);
    if (name == "shrink") {
      shrink_.runtime = words_.runtimes.empty() ? RuntimeKind::symbolic : runtimes.front();
      if (!words_.runtimes.empty() && runtimes.size() != 1)
        throw UsageError("--runtime: expected one runtime, found " + in_quotes(words_.runtimes));
      return shrink_file(shrink_);
    }
    if (name == "check") {
      check_.runtimes = runtimes;
      check_.set = parse_settings(words_.set);
      return check(check_);
    }
    fuzz_.runtimes = runtimes;
    fuzz_.set = parse_settings(words_.set);
    fuzz_.seed = parse_seed(words_.seed);
    if (fuzz_.runs) fuzz_.seconds = std::numeric_limits<double>::infinity();
    if (!words_.time.empty()) fuzz_.seconds = parse_duration(words_.time);
    if (!words_.fault.empty()) fuzz_.fault = parse_fault(words_.fault);
    if (!words_.engine.empty()) fuzz_.engine = parse_engine(words_.engine);
    fuzz_.without = ablation();
    return fuzz(fuzz_);
  }

  CLI::App app_{"GatherFuzz: finds defects in FP8 parameter gathering under CUDA graphs", "gatherfuzz"};
  Words words_;
  CheckOptions check_;
  TrainOptions train_;
  CampaignOptions fuzz_;
  ShrinkOptions shrink_;
  BenchOptions bench_;
  std::string corpus_folder_;
  std::vector<std::string> corpus_from_;
  CorpusAddOptions corpus_add_;
};

int main_with_exceptions(int argc, char** argv) {
  try {
    return CommandLine().run(argc, argv);
  } catch (const UsageError& error) {
    print_note(std::string("gatherfuzz: ") + error.what() + "\nSee gatherfuzz --help.");
    return kExitUsage;
  } catch (const Interrupted&) {
    print_note("gatherfuzz: interrupted");
    return kExitInterrupted;
  } catch (const std::exception& error) {
    print_note(std::string("gatherfuzz: ") + error.what());
    return kExitInternal;
  }
}

}  // namespace

}  // namespace gatherfuzz

int main(int argc, char** argv) {
  return gatherfuzz::main_with_exceptions(argc, argv);
}
