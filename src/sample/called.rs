//! What a process is called where there are few columns: the script rather than its interpreter.

use super::ProcSample;

const INTERPRETERS: [&str; 9] =
    ["python", "bash", "sh", "node", "perl", "ruby", "java", "uv", "env"];
/// Characters of a name at the most.
const MOST: usize = 64;

impl ProcSample {
    /// The script, the module or the program, without its folders. Hostile text.
    pub fn short_name(&self) -> String {
        let arguments = self.arguments();
        let name = self.named_by().and_then(|at| arguments.get(at)).map(|argument| base(argument));
        let name = name.filter(|name| !name.is_empty()).unwrap_or(&self.comm);
        // A title such as `VLLM::EngineCore` is one word; what follows a space is its arguments.
        name.split_whitespace().next().unwrap_or_default().chars().take(MOST).collect()
    }

    /// The command from its name on: without interpreter and folders. Hostile text.
    pub fn short_command(&self) -> String {
        let at = self.named_by().unwrap_or(0);
        let mut arguments = self.arguments().iter().skip(at);
        let Some(first) = arguments.next() else { return self.comm.clone() };
        let mut command = base(first).to_owned();
        for argument in arguments {
            command.push(' ');
            command.push_str(argument);
        }
        command
    }

    fn arguments(&self) -> &[String] {
        self.cmdline.value().map(Vec::as_slice).unwrap_or_default()
    }

    /// The argument that it is called by; `python -c CODE` has no name of its own.
    fn named_by(&self) -> Option<usize> {
        let arguments = self.arguments();
        let program = base(arguments.first()?);
        if !INTERPRETERS.iter().any(|name| program.starts_with(name)) {
            return Some(0);
        }
        let mut rest = arguments.iter().enumerate().skip(1);
        while let Some((at, argument)) = rest.next() {
            match argument.as_str() {
                "-c" | "-e" => return None,
                "-m" => return Some(at + 1).filter(|at| *at < arguments.len()),
                // These have a value of their own.
                "-W" | "-X" => _ = rest.next(),
                option if option.is_empty() || option.starts_with('-') => {}
                _ => return Some(at),
            }
        }
        None
    }
}

fn base(text: &str) -> &str {
    // The title of a process may end in anything: what follows a space is no folder.
    let end = text.find(' ').unwrap_or(text.len());
    let folders = text.get(..end).and_then(|path| path.rfind('/')).map_or(0, |at| at + 1);
    text.get(folders..).unwrap_or(text)
}
