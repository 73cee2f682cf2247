# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_vramlens_global_optspecs
    string join \n V/version v/verbose once demo need= json config= log= gpu= interval= color= theme= set= ascii isolate host= h/help
end

function __fish_vramlens_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_vramlens_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_vramlens_using_subcommand
    set -l cmd (__fish_vramlens_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c vramlens -n "__fish_vramlens_needs_command" -l need -d 'What is to be started: the view says whether it fits, and after which of the fixes: 12GiB' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_needs_command" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_needs_command" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_needs_command" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_needs_command" -s V -l version -d 'Print the version; with --verbose all that a report of a fault needs, and nothing private'
complete -c vramlens -n "__fish_vramlens_needs_command" -s v -l verbose -d 'Say more: with --version'
complete -c vramlens -n "__fish_vramlens_needs_command" -l once -d 'Print one frame as text and end'
complete -c vramlens -n "__fish_vramlens_needs_command" -l demo -d 'Show a recording of a real GPU that is built in'
complete -c vramlens -n "__fish_vramlens_needs_command" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_needs_command" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_needs_command" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "triage" -d 'Report who holds the memory, what is garbage and what to type; for scripts and SSH'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "kill" -d 'End holders safely, and say how much memory came back'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "explain" -d 'Read an out-of-memory error or a log, say what happened and what to do'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "fit" -d 'Say what of a model fits into which GPU'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "fixes" -d 'Print the nine fixes for CUDA out of memory'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "run" -d 'Run a command under watch; after an out-of-memory error say what happened and what to do'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "record" -d 'Keep a session in a file, or write it to standard output with `-`'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "replay" -d 'Show a recorded session'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "serve" -d 'Export metrics for Prometheus'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "doctor" -d 'Say what can and cannot be seen on this machine, and how to mend it'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "config" -d 'Show every setting, its value and where that comes from'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "gen" -d 'Print completions for a shell, or the manual; for whoever installs this program'
complete -c vramlens -n "__fish_vramlens_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l need -d 'Say whether this much fits now (ends with 0, else with 1), and after which of the fixes: 12GiB. With several --host it ends with 0 where it fits on one of them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand triage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l zombies -d 'Every zombie: holders that nobody wants, by the evidence'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l dry-run -d 'Only show what would be ended'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -s y -l yes -d 'Do not ask'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l now -d 'End with KILL at once'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l protected -d 'Also what other programs need (display servers, daemons), after a second question'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand kill" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l recording -d 'Complete the answer from this recording, which covers the time of the error' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l alone -d 'Do not ask the driver of this machine who holds the rest'
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -s c -l context -d 'Context in tokens: 8192, 8k, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l cache-type -d 'Type of the KV cache, or of its keys and values: q8_0, or q8_0,q4_0' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l parallel -d 'Sequences at once' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l ubatch -d 'Tokens of a micro-batch' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l gpu-layers -d 'Layers on the GPU; all without it' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l cpu-experts -d 'Layers whose experts stay on the CPU' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l quant -d 'Quantisation to compute for: Q4_K_M, Q8_0, …' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l mmproj -d 'A vision or audio encoder to load beside it' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l margin -d 'What to leave free; without it what the error bands ask for' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l overhead -d 'What CUDA itself takes; without it what such a card usually shows' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l draft -d 'Tokens that the model\'s own layers guess ahead, where it has some' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l era -d 'Builds of llama.cpp to compute for: new, old or ik' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l no-flash-attention -d 'Without flash attention'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l swa-full -d 'Layers with a sliding window keep the whole context'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l no-kv-offload -d 'The KV cache stays in host memory'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l no-op-offload -d 'Weights on the CPU are never copied to the GPU'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l kv-per-slot -d 'Each sequence has a cache of its own share of the context (`--no-kv-unified`)'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand fit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand fixes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l record -d 'Keep the session in this file, for `vramlens replay`' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -s q -l quiet -d 'Say nothing about a command that ends well'
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l for -d 'End after this time: 30s, 10m, 2h' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l max-size -d 'End when the file has this size' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l redact -d 'Leave out arguments and names of users, host, units, jobs and models; no verdict changes by it'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l answer -d 'Answer the requests that come as lines on standard input, and end with it: the far end of `vramlens --host`. Only with `-`'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l speed -d 'How many times as fast; 1 where it is not given' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l svg -d 'Write a chart of the recording as SVG, and end; `-` for standard output' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l png -d 'Write a chart of the recording as PNG, and end; `-` for standard output' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l from -d 'The chart begins here: 03:58, 2026-11-30 03:58, -10m (before the end), +5m (after the start)' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l to -d 'The chart ends here; with --once and --json the moment to print' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l size -d 'Size of the chart in pixels: 1200x600' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l once -d 'Print the last frame as text, or with --to that of a moment, and end'
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l listen -d 'Where to listen; 127.0.0.1:9835 without a word, nowhere with --textfile alone' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l token-file -d 'Ask readers for the bearer token in this file' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l holders -d 'Holders of one GPU that have series of their own; the rest is summed' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l textfile -d 'Write FILE for the textfile collector of node_exporter, such as /var/lib/node_exporter/vramlens.prom' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l allow-remote -d 'Let other machines in, where the address does'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l pcie -d 'Also read the traffic on the bus, which takes 20 ms a counter'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l wake -d 'Ask the driver although that wakes a GPU that sleeps'
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l themes -d 'List the themes instead, with what is wrong with those that cannot be read; or print the file of one, to begin an own one with' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l example -d 'Print the example file instead'
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -f -a "man" -d 'Print a page of the manual, as troff'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -f -a "all" -d 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and not __fish_seen_subcommand_from completions man all help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l config -d 'Read this configuration instead of the usual one' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l log -d 'Keep a log in this file: starts, faults, alerts, and what was ended' -r -F
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l gpu -d 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l interval -d 'Time between two looks: 500ms, 1s, 1m' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l color -d 'When to use colour' -r -f -a "auto\t'On a terminal that has it, unless NO_COLOR is set'
always\t'Always'
never\t'Never'
16\t'The terminal\'s own sixteen colours'
256\t'256 colours'
24bit\t'24-bit colours'"
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l theme -d 'The theme of the live view; `vramlens config --themes` lists them' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l set -d 'Any setting: --set kill.confirm=false' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l host -d 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill' -r
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l json -d 'Print JSON instead of text'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l ascii -d 'Draw with ASCII characters only'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -l isolate -d 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from all" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from help" -f -a "man" -d 'Print a page of the manual, as troff'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from help" -f -a "all" -d 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
complete -c vramlens -n "__fish_vramlens_using_subcommand gen; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "triage" -d 'Report who holds the memory, what is garbage and what to type; for scripts and SSH'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "kill" -d 'End holders safely, and say how much memory came back'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "explain" -d 'Read an out-of-memory error or a log, say what happened and what to do'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "fit" -d 'Say what of a model fits into which GPU'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "fixes" -d 'Print the nine fixes for CUDA out of memory'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "run" -d 'Run a command under watch; after an out-of-memory error say what happened and what to do'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "record" -d 'Keep a session in a file, or write it to standard output with `-`'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "replay" -d 'Show a recorded session'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "serve" -d 'Export metrics for Prometheus'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "doctor" -d 'Say what can and cannot be seen on this machine, and how to mend it'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "config" -d 'Show every setting, its value and where that comes from'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "gen" -d 'Print completions for a shell, or the manual; for whoever installs this program'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and not __fish_seen_subcommand_from triage kill explain fit fixes run record replay serve doctor config gen help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and __fish_seen_subcommand_from gen" -f -a "completions" -d 'Print the completion script of a shell'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and __fish_seen_subcommand_from gen" -f -a "man" -d 'Print a page of the manual, as troff'
complete -c vramlens -n "__fish_vramlens_using_subcommand help; and __fish_seen_subcommand_from gen" -f -a "all" -d 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
