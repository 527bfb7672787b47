//! Text in constants: comparing it, and putting the message of a panic together.

/// A message that is being written. What does not fit is cut.
pub(super) struct Message {
    bytes: [u8; 1024],
    len: usize,
}

impl Message {
    pub(super) const fn new() -> Self {
        Message { bytes: [0; 1024], len: 0 }
    }

    pub(super) const fn add(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut n = 0;
        while n < text.len() && self.len < self.bytes.len() {
            self.bytes[self.len] = text[n];
            self.len += 1;
            n += 1;
        }
        self
    }

    /// Adds a number.
    pub(super) const fn number(mut self, number: u32) -> Self {
        let (mut divisor, mut begun) = (1_000_000_000, false);
        while divisor > 0 {
            let digit = number / divisor % 10;
            begun = begun || digit > 0 || divisor == 1;
            if begun && self.len < self.bytes.len() {
                self.bytes[self.len] = b'0' + digit as u8;
                self.len += 1;
            }
            divisor /= 10;
        }
        self
    }

    /// Adds a name in quotes.
    pub(super) const fn quoted(self, name: Name) -> Self {
        let mut message = self.add("\"");
        let mut n = 0;
        while n < name.0.len() {
            message = message.add(name.0[n]);
            n += 1;
        }
        message.add("\"")
    }

    /// Fails the compilation, at the caller.
    #[track_caller]
    pub(super) const fn panic(&self) -> ! {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => panic!("{}", text),
            // Cut within a character.
            Err(_) => panic!("something is wrong here, but its description is too long"),
        }
    }
}

/// A name that is put together of several texts.
#[derive(Clone, Copy)]
pub(super) struct Name(pub(super) [&'static str; 4]);

impl Name {
    pub(super) const fn of(text: &'static str) -> Self {
        Name([text, "", "", ""])
    }

    pub(super) const fn len(&self) -> usize {
        self.0[0].len() + self.0[1].len() + self.0[2].len() + self.0[3].len()
    }

    /// A hash (FNV-1a, 32 bits) that takes `.` and `_` for the same, as Kafka's metrics do. The loop calls nothing: a
    /// call costs the compiler as much as a hundred other steps.
    pub(super) const fn hash(&self) -> u64 {
        let mut hash = 0x811c_9dc5;
        let mut part = 0;
        while part < 4 {
            let bytes = self.0[part].as_bytes();
            let len = bytes.len();
            let mut n = 0;
            while n < len {
                let byte = bytes[n];
                let byte = if byte == b'.' { b'_' } else { byte };
                hash = ((hash ^ byte as u64) * 0x0100_0193) & 0xffff_ffff;
                n += 1;
            }
            part += 1;
        }
        hash
    }

    /// Whether both are the same; `Some(false)` if they differ, but only in `.` and `_`.
    pub(super) const fn compare(&self, other: &Name) -> Option<bool> {
        if self.len() != other.len() {
            return None;
        }
        let mut exactly = true;
        let (mut mine, mut theirs) = ((0, 0), (0, 0));
        loop {
            let (a, b) = (self.next(&mut mine), other.next(&mut theirs));
            match (a, b) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) if alike(a) == alike(b) => exactly = false,
                (None, None) => return Some(exactly),
                _ => return None,
            }
        }
    }

    /// The byte at a place (part and index in it), which moves on.
    const fn next(&self, place: &mut (usize, usize)) -> Option<u8> {
        while place.0 < 4 {
            let bytes = self.0[place.0].as_bytes();
            if place.1 < bytes.len() {
                place.1 += 1;
                return Some(bytes[place.1 - 1]);
            }
            *place = (place.0 + 1, 0);
        }
        None
    }
}

const fn alike(byte: u8) -> u8 {
    if byte == b'.' { b'_' } else { byte }
}

/// Whether two texts are the same.
pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut n = 0;
    while n < a.len() {
        if a[n] != b[n] {
            return false;
        }
        n += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_whatever_their_parts() {
        let name = Name(["demo", "-", "a.b", "-changelog"]);
        assert_eq!(name.compare(&Name::of("demo-a.b-changelog")), Some(true));
        assert_eq!(name.compare(&Name(["", "demo-a_b", "", "-changelog"])), Some(false));
        assert_eq!(name.compare(&Name::of("demo-a-b-changelog")), None);
        assert_eq!(name.compare(&Name::of("demo")), None);
        assert_eq!(name.hash(), Name::of("demo-a_b-changelog").hash());
        assert_ne!(name.hash(), Name::of("demo-a-b-changelog").hash());
    }

    #[test]
    #[should_panic = "0 1 4294967295 100"]
    fn numbers_are_written_without_leading_zeros() {
        let message = Message::new().number(0).add(" ").number(1).add(" ").number(u32::MAX);
        message.add(" ").number(100).panic();
    }

    #[test]
    #[should_panic = "stage \"a-b\" is wrong"]
    fn messages_are_put_together() {
        Message::new().add("stage ").quoted(Name(["a", "-", "b", ""])).add(" is wrong").panic();
    }
}
