//! What can be broken on purpose, to see whether the checks notice: each flaw is a rule of the semantics that is not kept.
//!
//! They are compiled in only under the feature `flaws`; without it every `flawed!(..)` is `false`. A simulation switches them on for its
//! thread, the chaos rig for a whole process, by [`VARIABLE`]. A flaw is consulted at the place that keeps the rule. Some rules are kept twice: a flaw whose rule another defence would keep as well
//! also switches that one off ([`Flaw::defences`]), and the defences alone can be switched off too, to see what they are worth.

/// True if this flaw is switched on, on this thread or for the process.
macro_rules! flawed {
    ($flaw:ident) => {{
        #[cfg(feature = "flaws")]
        {
            $crate::flaws::is_on($crate::flaws::Flaw::$flaw)
        }
        #[cfg(not(feature = "flaws"))]
        {
            false
        }
    }};
}

#[cfg(feature = "simulation")]
pub use switched::switch_on;
#[cfg(all(feature = "flaws", feature = "kafka"))]
pub(crate) use switched::take;
#[cfg(feature = "flaws")]
#[allow(unreachable_pub, reason = "a simulation reaches it")]
pub use switched::{Flaw, is_on};

#[cfg(feature = "flaws")]
mod switched {
    use std::cell::Cell;
    #[cfg(feature = "kafka")]
    use std::ffi::OsString;
    use std::sync::atomic::{AtomicU64, Ordering};

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

    /// Names flaws of the process, comma separated, with their defences.
    #[cfg(feature = "kafka")]
    const VARIABLE: &str = "FLECHTWERK_FLAWS";

    thread_local! {
        static ON: Cell<u64> = const { Cell::new(0) };
    }

    /// Those of the process.
    static ALL_OVER: AtomicU64 = AtomicU64::new(0);

    /// Takes the flaws out of what the program was given, before the settings are read.
    #[cfg(feature = "kafka")]
    pub(crate) fn take(mut environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        if let Some(at) = environment.iter().position(|(name, _)| name == VARIABLE) {
            ALL_OVER.store(bits(&environment.remove(at).1.to_string_lossy()), Ordering::SeqCst);
        }
        environment
    }

    #[cfg(any(test, feature = "kafka"))]
    fn bits(names: &str) -> u64 {
        let named =
            names.split(',').filter_map(|name| Flaw::ALL.iter().find(|flaw| flaw.name() == name.trim()));
        named.fold(0, |on, flaw| on | (1 << *flaw as u64))
    }

    /// True if it is switched on, on this thread or for the process.
    #[allow(unreachable_pub, reason = "a simulation reaches it")]
    pub fn is_on(flaw: Flaw) -> bool {
        (ON.get() | ALL_OVER.load(Ordering::Relaxed)) & (1 << flaw as u64) != 0
    }

    /// These are on from now on, on this thread, and no others.
    #[cfg(feature = "simulation")]
    pub fn switch_on(flaws: &[Flaw]) {
        ON.set(flaws.iter().fold(0, |on, flaw| on | (1 << *flaw as u64)));
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn flaws_of_a_process_are_named() {
            assert_eq!(
                bits("OffsetsOutside, NoFence"),
                1 << Flaw::OffsetsOutside as u64 | 1 << Flaw::NoFence as u64
            );
            assert_eq!(bits(""), 0);
        }
    }
}
