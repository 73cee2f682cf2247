
use builtin;
use str;

set edit:completion:arg-completer[vramlens] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'vramlens'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'vramlens'= {
            cand --need 'What is to be started: the view says whether it fits, and after which of the fixes: 12GiB'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand -V 'Print the version; with --verbose all that a report of a fault needs, and nothing private'
            cand --version 'Print the version; with --verbose all that a report of a fault needs, and nothing private'
            cand -v 'Say more: with --version'
            cand --verbose 'Say more: with --version'
            cand --once 'Print one frame as text and end'
            cand --demo 'Show a recording of a real GPU that is built in'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand triage 'Report who holds the memory, what is garbage and what to type; for scripts and SSH'
            cand kill 'End holders safely, and say how much memory came back'
            cand explain 'Read an out-of-memory error or a log, say what happened and what to do'
            cand fit 'Say what of a model fits into which GPU'
            cand fixes 'Print the nine fixes for CUDA out of memory'
            cand run 'Run a command under watch; after an out-of-memory error say what happened and what to do'
            cand record 'Keep a session in a file, or write it to standard output with `-`'
            cand replay 'Show a recorded session'
            cand serve 'Export metrics for Prometheus'
            cand doctor 'Say what can and cannot be seen on this machine, and how to mend it'
            cand config 'Show every setting, its value and where that comes from'
            cand gen 'Print completions for a shell, or the manual; for whoever installs this program'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'vramlens;triage'= {
            cand --need 'Say whether this much fits now (ends with 0, else with 1), and after which of the fixes: 12GiB. With several --host it ends with 0 where it fits on one of them'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;kill'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --zombies 'Every zombie: holders that nobody wants, by the evidence'
            cand --dry-run 'Only show what would be ended'
            cand -y 'Do not ask'
            cand --yes 'Do not ask'
            cand --now 'End with KILL at once'
            cand --protected 'Also what other programs need (display servers, daemons), after a second question'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;explain'= {
            cand --recording 'Complete the answer from this recording, which covers the time of the error'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --alone 'Do not ask the driver of this machine who holds the rest'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;fit'= {
            cand -c 'Context in tokens: 8192, 8k, 1m'
            cand --context 'Context in tokens: 8192, 8k, 1m'
            cand --cache-type 'Type of the KV cache, or of its keys and values: q8_0, or q8_0,q4_0'
            cand --parallel 'Sequences at once'
            cand --ubatch 'Tokens of a micro-batch'
            cand --gpu-layers 'Layers on the GPU; all without it'
            cand --cpu-experts 'Layers whose experts stay on the CPU'
            cand --quant 'Quantisation to compute for: Q4_K_M, Q8_0, …'
            cand --mmproj 'A vision or audio encoder to load beside it'
            cand --margin 'What to leave free; without it what the error bands ask for'
            cand --overhead 'What CUDA itself takes; without it what such a card usually shows'
            cand --draft 'Tokens that the model''s own layers guess ahead, where it has some'
            cand --era 'Builds of llama.cpp to compute for: new, old or ik'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --no-flash-attention 'Without flash attention'
            cand --swa-full 'Layers with a sliding window keep the whole context'
            cand --no-kv-offload 'The KV cache stays in host memory'
            cand --no-op-offload 'Weights on the CPU are never copied to the GPU'
            cand --kv-per-slot 'Each sequence has a cache of its own share of the context (`--no-kv-unified`)'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;fixes'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;run'= {
            cand --record 'Keep the session in this file, for `vramlens replay`'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand -q 'Say nothing about a command that ends well'
            cand --quiet 'Say nothing about a command that ends well'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;record'= {
            cand --for 'End after this time: 30s, 10m, 2h'
            cand --max-size 'End when the file has this size'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --redact 'Leave out arguments and names of users, host, units, jobs and models; no verdict changes by it'
            cand --answer 'Answer the requests that come as lines on standard input, and end with it: the far end of `vramlens --host`. Only with `-`'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;replay'= {
            cand --speed 'How many times as fast; 1 where it is not given'
            cand --svg 'Write a chart of the recording as SVG, and end; `-` for standard output'
            cand --png 'Write a chart of the recording as PNG, and end; `-` for standard output'
            cand --from 'The chart begins here: 03:58, 2026-11-30 03:58, -10m (before the end), +5m (after the start)'
            cand --to 'The chart ends here; with --once and --json the moment to print'
            cand --size 'Size of the chart in pixels: 1200x600'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --once 'Print the last frame as text, or with --to that of a moment, and end'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;serve'= {
            cand --listen 'Where to listen; 127.0.0.1:9835 without a word, nowhere with --textfile alone'
            cand --token-file 'Ask readers for the bearer token in this file'
            cand --holders 'Holders of one GPU that have series of their own; the rest is summed'
            cand --textfile 'Write FILE for the textfile collector of node_exporter, such as /var/lib/node_exporter/vramlens.prom'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --allow-remote 'Let other machines in, where the address does'
            cand --pcie 'Also read the traffic on the bus, which takes 20 ms a counter'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;doctor'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --wake 'Ask the driver although that wakes a GPU that sleeps'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;config'= {
            cand --themes 'List the themes instead, with what is wrong with those that cannot be read; or print the file of one, to begin an own one with'
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --example 'Print the example file instead'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;gen'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand completions 'Print the completion script of a shell'
            cand man 'Print a page of the manual, as troff'
            cand all 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'vramlens;gen;completions'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;gen;man'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;gen;all'= {
            cand --config 'Read this configuration instead of the usual one'
            cand --log 'Keep a log in this file: starts, faults, alerts, and what was ended'
            cand --gpu 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB'
            cand --interval 'Time between two looks: 500ms, 1s, 1m'
            cand --color 'When to use colour'
            cand --theme 'The theme of the live view; `vramlens config --themes` lists them'
            cand --set 'Any setting: --set kill.confirm=false'
            cand --host 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill'
            cand --json 'Print JSON instead of text'
            cand --ascii 'Draw with ASCII characters only'
            cand --isolate 'Ask the driver in a process of its own: one that hangs or crashes is replaced'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'vramlens;gen;help'= {
            cand completions 'Print the completion script of a shell'
            cand man 'Print a page of the manual, as troff'
            cand all 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'vramlens;gen;help;completions'= {
        }
        &'vramlens;gen;help;man'= {
        }
        &'vramlens;gen;help;all'= {
        }
        &'vramlens;gen;help;help'= {
        }
        &'vramlens;help'= {
            cand triage 'Report who holds the memory, what is garbage and what to type; for scripts and SSH'
            cand kill 'End holders safely, and say how much memory came back'
            cand explain 'Read an out-of-memory error or a log, say what happened and what to do'
            cand fit 'Say what of a model fits into which GPU'
            cand fixes 'Print the nine fixes for CUDA out of memory'
            cand run 'Run a command under watch; after an out-of-memory error say what happened and what to do'
            cand record 'Keep a session in a file, or write it to standard output with `-`'
            cand replay 'Show a recorded session'
            cand serve 'Export metrics for Prometheus'
            cand doctor 'Say what can and cannot be seen on this machine, and how to mend it'
            cand config 'Show every setting, its value and where that comes from'
            cand gen 'Print completions for a shell, or the manual; for whoever installs this program'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'vramlens;help;triage'= {
        }
        &'vramlens;help;kill'= {
        }
        &'vramlens;help;explain'= {
        }
        &'vramlens;help;fit'= {
        }
        &'vramlens;help;fixes'= {
        }
        &'vramlens;help;run'= {
        }
        &'vramlens;help;record'= {
        }
        &'vramlens;help;replay'= {
        }
        &'vramlens;help;serve'= {
        }
        &'vramlens;help;doctor'= {
        }
        &'vramlens;help;config'= {
        }
        &'vramlens;help;gen'= {
            cand completions 'Print the completion script of a shell'
            cand man 'Print a page of the manual, as troff'
            cand all 'Write all of them into a folder: FOLDER/completions and FOLDER/man'
        }
        &'vramlens;help;gen;completions'= {
        }
        &'vramlens;help;gen;man'= {
        }
        &'vramlens;help;gen;all'= {
        }
        &'vramlens;help;help'= {
        }
    ]
    $completions[$command]
}
