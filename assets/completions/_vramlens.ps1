
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'vramlens' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'vramlens'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'vramlens' {
            [CompletionResult]::new('--need', '--need', [CompletionResultType]::ParameterName, 'What is to be started: the view says whether it fits, and after which of the fixes: 12GiB')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print the version; with --verbose all that a report of a fault needs, and nothing private')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print the version; with --verbose all that a report of a fault needs, and nothing private')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Say more: with --version')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Say more: with --version')
            [CompletionResult]::new('--once', '--once', [CompletionResultType]::ParameterName, 'Print one frame as text and end')
            [CompletionResult]::new('--demo', '--demo', [CompletionResultType]::ParameterName, 'Show a recording of a real GPU that is built in')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('triage', 'triage', [CompletionResultType]::ParameterValue, 'Report who holds the memory, what is garbage and what to type; for scripts and SSH')
            [CompletionResult]::new('kill', 'kill', [CompletionResultType]::ParameterValue, 'End holders safely, and say how much memory came back')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'Read an out-of-memory error or a log, say what happened and what to do')
            [CompletionResult]::new('fit', 'fit', [CompletionResultType]::ParameterValue, 'Say what of a model fits into which GPU')
            [CompletionResult]::new('fixes', 'fixes', [CompletionResultType]::ParameterValue, 'Print the nine fixes for CUDA out of memory')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run a command under watch; after an out-of-memory error say what happened and what to do')
            [CompletionResult]::new('record', 'record', [CompletionResultType]::ParameterValue, 'Keep a session in a file, or write it to standard output with `-`')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Show a recorded session')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Export metrics for Prometheus')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Say what can and cannot be seen on this machine, and how to mend it')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show every setting, its value and where that comes from')
            [CompletionResult]::new('gen', 'gen', [CompletionResultType]::ParameterValue, 'Print completions for a shell, or the manual; for whoever installs this program')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'vramlens;triage' {
            [CompletionResult]::new('--need', '--need', [CompletionResultType]::ParameterName, 'Say whether this much fits now (ends with 0, else with 1), and after which of the fixes: 12GiB. With several --host it ends with 0 where it fits on one of them')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;kill' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--zombies', '--zombies', [CompletionResultType]::ParameterName, 'Every zombie: holders that nobody wants, by the evidence')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Only show what would be ended')
            [CompletionResult]::new('-y', '-y', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--yes', '--yes', [CompletionResultType]::ParameterName, 'Do not ask')
            [CompletionResult]::new('--now', '--now', [CompletionResultType]::ParameterName, 'End with KILL at once')
            [CompletionResult]::new('--protected', '--protected', [CompletionResultType]::ParameterName, 'Also what other programs need (display servers, daemons), after a second question')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;explain' {
            [CompletionResult]::new('--recording', '--recording', [CompletionResultType]::ParameterName, 'Complete the answer from this recording, which covers the time of the error')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--alone', '--alone', [CompletionResultType]::ParameterName, 'Do not ask the driver of this machine who holds the rest')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;fit' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Context in tokens: 8192, 8k, 1m')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context in tokens: 8192, 8k, 1m')
            [CompletionResult]::new('--cache-type', '--cache-type', [CompletionResultType]::ParameterName, 'Type of the KV cache, or of its keys and values: q8_0, or q8_0,q4_0')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Sequences at once')
            [CompletionResult]::new('--ubatch', '--ubatch', [CompletionResultType]::ParameterName, 'Tokens of a micro-batch')
            [CompletionResult]::new('--gpu-layers', '--gpu-layers', [CompletionResultType]::ParameterName, 'Layers on the GPU; all without it')
            [CompletionResult]::new('--cpu-experts', '--cpu-experts', [CompletionResultType]::ParameterName, 'Layers whose experts stay on the CPU')
            [CompletionResult]::new('--quant', '--quant', [CompletionResultType]::ParameterName, 'Quantisation to compute for: Q4_K_M, Q8_0, …')
            [CompletionResult]::new('--mmproj', '--mmproj', [CompletionResultType]::ParameterName, 'A vision or audio encoder to load beside it')
            [CompletionResult]::new('--margin', '--margin', [CompletionResultType]::ParameterName, 'What to leave free; without it what the error bands ask for')
            [CompletionResult]::new('--overhead', '--overhead', [CompletionResultType]::ParameterName, 'What CUDA itself takes; without it what such a card usually shows')
            [CompletionResult]::new('--draft', '--draft', [CompletionResultType]::ParameterName, 'Tokens that the model''s own layers guess ahead, where it has some')
            [CompletionResult]::new('--era', '--era', [CompletionResultType]::ParameterName, 'Builds of llama.cpp to compute for: new, old or ik')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--no-flash-attention', '--no-flash-attention', [CompletionResultType]::ParameterName, 'Without flash attention')
            [CompletionResult]::new('--swa-full', '--swa-full', [CompletionResultType]::ParameterName, 'Layers with a sliding window keep the whole context')
            [CompletionResult]::new('--no-kv-offload', '--no-kv-offload', [CompletionResultType]::ParameterName, 'The KV cache stays in host memory')
            [CompletionResult]::new('--no-op-offload', '--no-op-offload', [CompletionResultType]::ParameterName, 'Weights on the CPU are never copied to the GPU')
            [CompletionResult]::new('--kv-per-slot', '--kv-per-slot', [CompletionResultType]::ParameterName, 'Each sequence has a cache of its own share of the context (`--no-kv-unified`)')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;fixes' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;run' {
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Keep the session in this file, for `vramlens replay`')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing about a command that ends well')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing about a command that ends well')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;record' {
            [CompletionResult]::new('--for', '--for', [CompletionResultType]::ParameterName, 'End after this time: 30s, 10m, 2h')
            [CompletionResult]::new('--max-size', '--max-size', [CompletionResultType]::ParameterName, 'End when the file has this size')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--redact', '--redact', [CompletionResultType]::ParameterName, 'Leave out arguments and names of users, host, units, jobs and models; no verdict changes by it')
            [CompletionResult]::new('--answer', '--answer', [CompletionResultType]::ParameterName, 'Answer the requests that come as lines on standard input, and end with it: the far end of `vramlens --host`. Only with `-`')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;replay' {
            [CompletionResult]::new('--speed', '--speed', [CompletionResultType]::ParameterName, 'How many times as fast; 1 where it is not given')
            [CompletionResult]::new('--svg', '--svg', [CompletionResultType]::ParameterName, 'Write a chart of the recording as SVG, and end; `-` for standard output')
            [CompletionResult]::new('--png', '--png', [CompletionResultType]::ParameterName, 'Write a chart of the recording as PNG, and end; `-` for standard output')
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'The chart begins here: 03:58, 2026-11-30 03:58, -10m (before the end), +5m (after the start)')
            [CompletionResult]::new('--to', '--to', [CompletionResultType]::ParameterName, 'The chart ends here; with --once and --json the moment to print')
            [CompletionResult]::new('--size', '--size', [CompletionResultType]::ParameterName, 'Size of the chart in pixels: 1200x600')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--once', '--once', [CompletionResultType]::ParameterName, 'Print the last frame as text, or with --to that of a moment, and end')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;serve' {
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'Where to listen; 127.0.0.1:9835 without a word, nowhere with --textfile alone')
            [CompletionResult]::new('--token-file', '--token-file', [CompletionResultType]::ParameterName, 'Ask readers for the bearer token in this file')
            [CompletionResult]::new('--holders', '--holders', [CompletionResultType]::ParameterName, 'Holders of one GPU that have series of their own; the rest is summed')
            [CompletionResult]::new('--textfile', '--textfile', [CompletionResultType]::ParameterName, 'Write FILE for the textfile collector of node_exporter, such as /var/lib/node_exporter/vramlens.prom')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--allow-remote', '--allow-remote', [CompletionResultType]::ParameterName, 'Let other machines in, where the address does')
            [CompletionResult]::new('--pcie', '--pcie', [CompletionResultType]::ParameterName, 'Also read the traffic on the bus, which takes 20 ms a counter')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;doctor' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--wake', '--wake', [CompletionResultType]::ParameterName, 'Ask the driver although that wakes a GPU that sleeps')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;config' {
            [CompletionResult]::new('--themes', '--themes', [CompletionResultType]::ParameterName, 'List the themes instead, with what is wrong with those that cannot be read; or print the file of one, to begin an own one with')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--example', '--example', [CompletionResultType]::ParameterName, 'Print the example file instead')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;gen' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a page of the manual, as troff')
            [CompletionResult]::new('all', 'all', [CompletionResultType]::ParameterValue, 'Write all of them into a folder: FOLDER/completions and FOLDER/man')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'vramlens;gen;completions' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;gen;man' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;gen;all' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Read this configuration instead of the usual one')
            [CompletionResult]::new('--log', '--log', [CompletionResultType]::ParameterName, 'Keep a log in this file: starts, faults, alerts, and what was ended')
            [CompletionResult]::new('--gpu', '--gpu', [CompletionResultType]::ParameterName, 'Only these GPUs: indexes or the beginnings of UUIDs, separated by commas. For `fit` also a card that is not here: 24GiB')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Time between two looks: 500ms, 1s, 1m')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--theme', '--theme', [CompletionResultType]::ParameterName, 'The theme of the live view; `vramlens config --themes` lists them')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'Any setting: --set kill.confirm=false')
            [CompletionResult]::new('--host', '--host', [CompletionResultType]::ParameterName, 'Show this machine, by ssh; several where it is given several times. `local` is this one, `all` the list in the configuration. For the live view, --once, --json, triage and kill')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON instead of text')
            [CompletionResult]::new('--ascii', '--ascii', [CompletionResultType]::ParameterName, 'Draw with ASCII characters only')
            [CompletionResult]::new('--isolate', '--isolate', [CompletionResultType]::ParameterName, 'Ask the driver in a process of its own: one that hangs or crashes is replaced')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'vramlens;gen;help' {
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a page of the manual, as troff')
            [CompletionResult]::new('all', 'all', [CompletionResultType]::ParameterValue, 'Write all of them into a folder: FOLDER/completions and FOLDER/man')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'vramlens;gen;help;completions' {
            break
        }
        'vramlens;gen;help;man' {
            break
        }
        'vramlens;gen;help;all' {
            break
        }
        'vramlens;gen;help;help' {
            break
        }
        'vramlens;help' {
            [CompletionResult]::new('triage', 'triage', [CompletionResultType]::ParameterValue, 'Report who holds the memory, what is garbage and what to type; for scripts and SSH')
            [CompletionResult]::new('kill', 'kill', [CompletionResultType]::ParameterValue, 'End holders safely, and say how much memory came back')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'Read an out-of-memory error or a log, say what happened and what to do')
            [CompletionResult]::new('fit', 'fit', [CompletionResultType]::ParameterValue, 'Say what of a model fits into which GPU')
            [CompletionResult]::new('fixes', 'fixes', [CompletionResultType]::ParameterValue, 'Print the nine fixes for CUDA out of memory')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run a command under watch; after an out-of-memory error say what happened and what to do')
            [CompletionResult]::new('record', 'record', [CompletionResultType]::ParameterValue, 'Keep a session in a file, or write it to standard output with `-`')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Show a recorded session')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Export metrics for Prometheus')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Say what can and cannot be seen on this machine, and how to mend it')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show every setting, its value and where that comes from')
            [CompletionResult]::new('gen', 'gen', [CompletionResultType]::ParameterValue, 'Print completions for a shell, or the manual; for whoever installs this program')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'vramlens;help;triage' {
            break
        }
        'vramlens;help;kill' {
            break
        }
        'vramlens;help;explain' {
            break
        }
        'vramlens;help;fit' {
            break
        }
        'vramlens;help;fixes' {
            break
        }
        'vramlens;help;run' {
            break
        }
        'vramlens;help;record' {
            break
        }
        'vramlens;help;replay' {
            break
        }
        'vramlens;help;serve' {
            break
        }
        'vramlens;help;doctor' {
            break
        }
        'vramlens;help;config' {
            break
        }
        'vramlens;help;gen' {
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a page of the manual, as troff')
            [CompletionResult]::new('all', 'all', [CompletionResultType]::ParameterValue, 'Write all of them into a folder: FOLDER/completions and FOLDER/man')
            break
        }
        'vramlens;help;gen;completions' {
            break
        }
        'vramlens;help;gen;man' {
            break
        }
        'vramlens;help;gen;all' {
            break
        }
        'vramlens;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
