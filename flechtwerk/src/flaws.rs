//! What can be broken on purpose, to see whether the checks notice: each flaw is a rule of the semantics that is not kept.
//!
//! They are compiled in only under the feature `simulation`; without it every `flawed!(..)` is `false`. A flaw is consulted
//! at the place that keeps the rule. Some rules are kept twice: a flaw whose rule another defence would keep as well
//! also switches that one off ([`Flaw::defences`]), and the defences alone can be switched off too, to see what they are worth.

/// True if this flaw is switched on, on this thread.
macro_rules! flawed {
    ($flaw:ident) => {{
        #[cfg(feature = "simulation")]
        {
            $crate::flaws::is_on($crate::flaws::Flaw::$flaw)
        }
        #[cfg(not(feature = "simulation"))]
        {
            false
        }
    }};
}

#[cfg(feature = "simulation")]
pub use switched::{Flaw, is_on, switch_on};

#[cfg(feature = "simulation")]
mod switched {
    use std::cell::Cell;

    macro_rules! flaws {
        ($($(#[doc = $doc:literal])+ $flaw:ident $(masked by $($defence:ident),+)?;)*) => {
            /// See the module.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum Flaw {
                $($(#[doc = $doc])+ $flaw,)*
            }

            impl Flaw {
                /// All of them.
                pub const ALL: &[Flaw] = &[$(Flaw::$flaw),*];

                /// Its name.
                pub fn name(self) -> &'static str {
                    match self {
                        $(Flaw::$flaw => stringify!($flaw),)*
                    }
                }

                /// What is broken, in a sentence.
                pub fn what(self) -> &'static str {
                    match self {
                        $(Flaw::$flaw => concat!($($doc),+).trim_ascii(),)*
                    }
                }

                /// True if it is a defence, which others switch off.
                pub fn is_defence(self) -> bool {
                    matches!(self, Flaw::UnstablePositions | Flaw::EndsIgnored | Flaw::NoGeneration | Flaw::NoWaitForStable)
                }

                /// Defences that would keep the rule as well, and are switched off with it.
                pub fn defences(self) -> &'static [Flaw] {
                    match self {
                        $(Flaw::$flaw => &[$($(Flaw::$defence),+)?],)*
                    }
                }
            }
        };
    }

    flaws! {
        /// The committed positions count that were read before the fence.
        PositionsBeforeFence masked by UnstablePositions;
        /// The offsets are committed by a request of their own, outside of the transaction.
        OffsetsOutside;
        /// The store is written before the commit is known.
        StoreBeforeCommit;
        /// A task starts without `InitProducerId` ending what its previous owner has open.
        NoFence masked by NoGeneration;
        /// Each producer has a transactional id of its own.
        RandomTransactionalId masked by NoGeneration;
        /// A restore reads what is not committed as well, up to the high watermark.
        RestoreUncommitted masked by NoWaitForStable;
        /// A restore ends at the first end-of-partition event, wherever that is.
        RestoreStopsEarly;
        /// A change goes to the changelog partition that its key hashes to, not to that of its task.
        ChangelogByKey;
        /// A producer goes on though a request of its transaction was never answered.
        SuspectGoesOn;
        /// The group's metadata in a transaction is that of the task's start.
        StaleMetadata;
        /// What was computed stays after an abort that discards it.
        StateKeptAfterAbort;
        /// "Unchanged" is said of what the store has, not of the batch that is still being committed.
        UnchangedByStore;
        /// A delete goes to the store and not to the changelog.
        TombstoneDropped;
        /// The committed position is one too far.
        PositionTooFar;
        /// The committed position is one too short.
        PositionTooShort;
        /// The position stays where it was at a record that was skipped.
        SkippedNotCommitted masked by EndsIgnored;
        /// Within a bucket the records of a round come as they like, whatever the order of `inputs`.
        InputsOrderIgnored;
        /// A task goes on though its session is lost and its partition is another's.
        TaskKeptWhenLost masked by NoFence, NoGeneration;
        /// A store is used as it is, whatever its stamp says.
        StaleStore;
        /// All owners write one name into their stamps.
        StampWithoutOwner;
        /// After a fence over something computed no stamp is read.
        NoStampAfterFence;
        /// A batch whose end was not heard of is sent again though its stamps say that it is committed.
        SentAgain;

        /// No defence: positions are read though an open transaction is about to replace them.
        UnstablePositions;
        /// No defence: positions do not move to the ends of partitions that were seen.
        EndsIgnored;
        /// No defence: transactions carry no generation of the group.
        NoGeneration;
        /// No defence: nobody waits until an open transaction of another producer has left the changelog's end.
        NoWaitForStable;
    }

    thread_local! {
        static ON: Cell<u64> = const { Cell::new(0) };
    }

    /// True if it is switched on, on this thread.
    pub fn is_on(flaw: Flaw) -> bool {
        ON.get() & (1 << flaw as u64) != 0
    }

    /// These are on from now on, on this thread, and no others.
    pub fn switch_on(flaws: &[Flaw]) {
        ON.set(flaws.iter().fold(0, |on, flaw| on | (1 << *flaw as u64)));
    }
}
