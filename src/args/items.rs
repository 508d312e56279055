//! The items of a command: one per argument or, with the option `WIDTH`, runs of items of that many bytes.

use crate::command_error::{CommandError, bad};
use crate::server::ffi::{Args, OwnedString};

/// The largest `WIDTH` in bytes.
pub const MAX_WIDTH: usize = 65_536;

/// The largest number of items of a command with `WIDTH`.
const MAX_ITEMS: usize = 1 << 20;

#[derive(Clone, Copy)]
pub struct Items<'a> {
    pub args: Args<'a>,
    pub width: Option<usize>,
    pub len: usize,
}

impl<'a> Items<'a> {
    /// The items in `args`, each of `width` bytes. Without `width`, each argument is an item.
    ///
    /// # Errors
    /// There is no item, there are too many, or the length of an argument is no multiple of `width`.
    pub fn new(args: Args<'a>, width: Option<usize>) -> Result<Self, CommandError> {
        let Some(width) = width else { return Ok(Self::single(args)) };
        let mut len = 0;
        for (at, bytes) in args.bytes().map(<[u8]>::len).enumerate() {
            if bytes == 0 || bytes % width != 0 {
                return bad(format!(
                    "bad argument {} after ITEMS: expected items of {width} bytes (WIDTH) on end, got {bytes} bytes",
                    at + 1
                ));
            }
            len += bytes / width;
        }
        if len > MAX_ITEMS {
            let why = format!("too many items: expected at most {MAX_ITEMS} with WIDTH, got {len}");
            return bad(why);
        }
        Ok(Items { args, width: Some(width), len })
    }

    /// The items of a command without `WIDTH`.
    pub fn single(args: Args<'a>) -> Self {
        Items { args, width: None, len: args.len() }
    }

    /// The items of a command with `WIDTH`; `None` without.
    pub fn runs(self) -> Option<Runs<'a>> {
        self.width.map(|width| Runs { run: &[], args: self.args, width, len: self.len })
    }

    /// Copies the items that `takes` accepts by their index, and packs them into new arguments of at least `bytes`
    /// bytes, the last excepted.
    pub fn packed(self, bytes: usize, takes: impl Fn(usize) -> bool) -> Vec<OwnedString> {
        let (mut packed, mut run) = (Vec::new(), Vec::new());
        let items = self.runs().into_iter().flatten().enumerate();
        for (_, item) in items.filter(|&(at, _)| takes(at)) {
            run.extend_from_slice(item);
            if run.len() >= bytes {
                packed.push(OwnedString::new(&run));
                run.clear();
            }
        }
        if !run.is_empty() {
            packed.push(OwnedString::new(&run));
        }
        packed
    }
}

/// Iterates over items of equal length, which lie on end in the arguments of a command.
#[derive(Clone)]
pub struct Runs<'a> {
    /// The rest of the current argument.
    run: &'a [u8],
    /// The arguments after it.
    args: Args<'a>,
    width: usize,
    len: usize,
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.run.is_empty() {
            self.run = self.args.first(1).bytes().next()?;
            self.args = self.args.from(1);
        }
        let (item, rest) = self.run.split_at_checked(self.width)?;
        self.run = rest;
        self.len -= 1;
        Some(item)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Runs<'_> {}
