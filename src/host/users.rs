//! Names of users.

use std::collections::HashMap;

use crate::host::root::{self, Root};
use crate::sample::{Reading, Why};

const PASSWD_LIMIT: usize = 1 << 20;
const MOST: usize = 4096;

/// Names by user id. `/etc/passwd` is read here; what is not in it (LDAP, SSSD) is looked up by
/// the helper thread, since that can take for ever.
#[derive(Debug, Default)]
pub(super) struct Users {
    names: HashMap<u32, Reading<String>>,
    read: bool,
}

impl Users {
    /// The name, or `NotYet` where it has to be asked for: see [`Users::unknown`].
    pub fn name(&mut self, root: &Root, uid: u32) -> Reading<String> {
        if !self.read {
            self.read = true;
            self.read_passwd(root);
        }
        if self.names.len() > MOST {
            self.names.clear();
            self.read = false;
        }
        let absent = if root.is_machine() { Why::NotYet } else { Why::NotSupported };
        self.names.entry(uid).or_insert(Reading::Absent(absent)).clone()
    }

    /// Ids that have to be asked for.
    pub fn unknown(&self) -> Vec<u32> {
        let not_yet = |name: &Reading<String>| name.why() == Some(Why::NotYet);
        self.names.iter().filter(|(_, name)| not_yet(name)).map(|(uid, _)| *uid).collect()
    }

    /// What asking brought.
    pub fn learn(&mut self, uid: u32, name: Reading<String>) {
        self.names.insert(uid, name);
    }

    fn read_passwd(&mut self, root: &Root) {
        let text = root::text(&root.path("etc/passwd"), PASSWD_LIMIT).unwrap_or_default();
        for line in text.lines().take(MOST) {
            let mut fields = line.split(':');
            let (name, uid) = (fields.next().unwrap_or_default(), fields.nth(1));
            if let Some(Ok(uid)) = uid.map(str::parse)
                && !name.is_empty()
            {
                // The first line of an id is its name, as the C library has it.
                self.names.entry(uid).or_insert_with(|| Reading::Value(name.to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir(root.path("etc")).unwrap();
        std::fs::write(
            root.path("etc/passwd"),
            "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n+::::::\nanna:x:1000:1000::/:/bin/sh\n",
        )
        .unwrap();
        let mut users = Users::default();
        assert_eq!(users.name(&root, 0), Reading::Value("root".to_owned()));
        assert_eq!(users.name(&root, 1000), Reading::Value("anna".to_owned()));
        assert_eq!(users.name(&root, 7), Reading::Absent(Why::NotSupported));
        assert_eq!(users.unknown(), [0_u32; 0]);
    }

    #[test]
    fn who_is_not_in_the_file_is_asked_for_once() {
        let mut users = Users::default();
        let root = Root::machine();
        assert_eq!(users.name(&root, 4_000_000_001), Reading::Absent(Why::NotYet));
        assert_eq!(users.unknown(), [4_000_000_001]);
        users.learn(4_000_000_001, Reading::Absent(Why::NotSupported));
        assert_eq!(users.name(&root, 4_000_000_001), Reading::Absent(Why::NotSupported));
        assert_eq!(users.unknown(), [0_u32; 0]);
    }
}
