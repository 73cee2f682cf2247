//! One table of everything that is shown: title, unit, help, JSON key, metric name.
