//! What each class of holder is called: by people, and by machines.

use crate::analyze::{Class, Verdict};

/// A class, its key in JSON and metrics, and its word on screens; ten columns at the most.
pub const CLASSES: [(Class, &str, &str); 20] = [
    (Class::Active, "active", "active"),
    (Class::Idle, "idle", "idle"),
    (Class::Unknown, "unknown", "unknown"),
    (Class::Suspended, "suspended", "suspended"),
    (Class::Debugged, "debugged", "debugged"),
    (Class::Frozen, "frozen", "frozen"),
    (Class::Orphan, "orphan", "orphan"),
    (Class::Ghost, "ghost", "ghost"),
    (Class::Survivor, "survivor", "survivor"),
    (Class::Hidden, "hidden", "hidden"),
    (Class::Defunct, "defunct", "defunct"),
    (Class::Stuck, "stuck", "stuck"),
    (Class::Unkillable, "unkillable", "unkillable"),
    (Class::OtherNamespace, "other_namespace", "other ns"),
    (Class::OtherUser, "other_user", "other user"),
    (Class::Exiting, "exiting", "exiting"),
    (Class::IdleServer, "idle_server", "server"),
    (Class::BusyCpu, "busy_cpu", "busy cpu"),
    (Class::Reused, "reused", "pid reused"),
    (Class::Protected, "protected", "protected"),
];

/// The word that a verdict is shown by; ten columns at the most.
pub fn state_word(verdict: &Verdict) -> &'static str {
    if verdict.zombie { "zombie" } else { class_word(verdict.class) }
}

/// The key of a class in JSON and metrics.
pub fn class_key(class: Class) -> &'static str {
    CLASSES.iter().find(|row| row.0 == class).map_or("unknown", |row| row.1)
}

/// The word for a class; ten columns at the most.
pub fn class_word(class: Class) -> &'static str {
    CLASSES.iter().find(|row| row.0 == class).map_or("unknown", |row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_class_once_and_its_keys_are_those_of_the_json() {
        for (at, (class, key, word)) in CLASSES.iter().enumerate() {
            assert_eq!(*class as usize, at, "{key}");
            assert_eq!(serde_json::to_value(class).ok(), Some((*key).into()));
            assert!(word.len() <= 10, "{word}");
        }
        assert_eq!(Class::Protected as usize + 1, CLASSES.len());
    }
}
