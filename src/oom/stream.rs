//! Lines of one writer joined without white space, with the way back to the lines.

/// The text of a writer.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    /// Every byte that is no white space.
    pub text: Vec<u8>,
    /// Where each line begins in `text`, and its number.
    starts: Vec<(usize, usize)>,
}

impl Stream {
    /// Joins numbered lines.
    #[cfg(test)]
    pub(super) fn of_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Self {
        let mut stream = Self::default();
        for (number, line) in lines {
            stream.push(number, line);
        }
        stream
    }

    /// Adds a line.
    pub(super) fn push(&mut self, number: usize, line: &str) {
        self.starts.push((self.text.len(), number));
        self.text.extend(line.split_whitespace().flat_map(str::bytes));
    }

    /// The number of the line that holds the byte at `at`.
    pub(super) fn line_at(&self, at: usize) -> usize {
        let after = self.starts.partition_point(|(start, _)| *start <= at);
        self.starts.get(after.saturating_sub(1)).map_or(0, |(_, number)| *number)
    }

    /// Where the line that holds the byte at `at` ends.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let after = self.starts.partition_point(|(start, _)| *start <= at);
        self.starts.get(after).map_or(self.text.len(), |(start, _)| *start)
    }
}
