//! What a command did, for replicas, the AOF and subscribers.

use rollcall_core::window::Move;

use crate::limits::ServerLimit;
use crate::refusal::Refusal;
use crate::server::ffi::{ArgOrOwned, Args, Closed, Ctx};
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// A word of a replicated command.
pub(super) fn word(ctx: Ctx, text: impl AsRef<[u8]>) -> ArgOrOwned<'static> {
    ArgOrOwned::Owned(ctx.string(text.as_ref()))
}

/// The parameters of a value of family `T` that a command creates.
pub(super) trait Creating<T: Family> {
    /// The value.
    ///
    /// # Errors
    /// Those of the core.
    fn build(&self, limit: &ServerLimit) -> Result<T, Refusal>;

    /// Whose commands replicas are sent.
    fn prefix(&self) -> Prefix;

    /// When the key expires, in milliseconds since 1970.
    fn expiry(&self) -> Option<i64>;

    /// The error rate, where `RESERVE` takes it before the capacity, and the capacity.
    fn size(&self) -> (Option<f64>, u64);

    /// All others, as options that `RESERVE` and `INSERT` share.
    fn options(&self, ctx: Ctx) -> Vec<ArgOrOwned<'static>>;

    /// All parameters, as options of `INSERT`.
    fn insert_words(&self, ctx: Ctx) -> Vec<ArgOrOwned<'static>> {
        let (error_rate, capacity) = self.size();
        let mut words = vec![word(ctx, "CAPACITY"), word(ctx, capacity.to_string())];
        if let Some(error_rate) = error_rate {
            words.extend([word(ctx, "ERROR"), word(ctx, format!("{error_rate:?}"))]);
        }
        words.extend(self.options(ctx));
        words
    }

    /// Replicates the creation of an empty key, and sends its event.
    fn announce_reserved(&self, ctx: Ctx, key: Closed<'_>) {
        let (error_rate, capacity) = self.size();
        let mut arguments = vec![ArgOrOwned::Arg(key.name())];
        arguments.extend(error_rate.map(|error_rate| word(ctx, format!("{error_rate:?}"))));
        arguments.push(word(ctx, capacity.to_string()));
        arguments.extend(self.options(ctx));
        ctx.replicate(self.prefix().name(Verb::Reserve).text(), &arguments, Args::none());
        ctx.changed(key, T::prefix_of_events().event(Verb::Reserve));
        announce_expiry(ctx, key, self.expiry());
    }
}

/// Replicates a move that a value has made; `prefix` is that of its commands.
pub(super) fn announce_move(ctx: Ctx, prefix: Prefix, key: Closed<'_>, made: Move) {
    let (slice, rebases) = match made {
        Move::Stay => return,
        Move::Advance(slice) => (slice, false),
        Move::Rebase(slice) => (slice, true),
    };
    let mut arguments = vec![ArgOrOwned::Arg(key.name()), word(ctx, slice.to_string())];
    if rebases {
        arguments.push(word(ctx, "REBASE"));
    }
    ctx.replicate(prefix.name(Verb::Advance).text(), &arguments, Args::none());
}

/// Items that a command has added to a key.
pub(super) struct Added<'a, C> {
    /// Whose commands replicas are sent.
    pub(super) prefix: Prefix,
    pub(super) key: Closed<'a>,
    /// The parameters of the key, if the command created it.
    pub(super) created: Option<C>,
    /// The running command and all of its arguments, if it may be sent as it came.
    pub(super) whole: Option<(Verb, Args<'a>)>,
    /// Otherwise the items, as if these alone had been added: some of a list, and all of another.
    pub(super) some: Vec<ArgOrOwned<'a>>,
    pub(super) items: Args<'a>,
}

/// Replicates the effect of adding items, and sends its events. A created key is sent with every parameter.
pub(super) fn announce_added<T: Family, C: Creating<T>>(ctx: Ctx, added: Added<'_, C>) {
    let Added { prefix, key, created, whole, some, items } = added;
    let events = T::prefix_of_events();
    let mut arguments = vec![ArgOrOwned::Arg(key.name())];
    if let Some(creation) = &created {
        arguments.extend(creation.insert_words(ctx));
        arguments.push(word(ctx, "ITEMS"));
        arguments.extend(some);
        ctx.replicate(prefix.name(Verb::Insert).text(), &arguments, items);
        ctx.changed(key, events.event(Verb::Reserve));
    } else if let Some((verb, command)) = whole {
        ctx.replicate_under(prefix.name(verb), command);
    } else {
        arguments.extend(some);
        ctx.replicate(prefix.name(Verb::AddAll).text(), &arguments, items);
    }
    ctx.changed(key, events.event(Verb::Add));
    announce_expiry(ctx, key, created.and_then(|creation| creation.expiry()));
}

/// Replicates the expiry of a key that was created just now, and sends its event.
pub(super) fn announce_expiry(ctx: Ctx, key: Closed<'_>, expiry: Option<i64>) {
    if let Some(at) = expiry {
        ctx.replicate(c"PEXPIREAT", &[ArgOrOwned::Arg(key.name()), word(ctx, at.to_string())], Args::none());
        ctx.notify_generic(key, c"expire");
    }
}
