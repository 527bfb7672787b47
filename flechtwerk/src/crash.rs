//! Steps of the runtime at which a process can be told to die, so that tests can see what is left of each.
//!
//! They are compiled in only under the feature `crash-points`, which is no part of what the crate promises and never for
//! production; without it every `crash_point!(..)` is nothing at all. With it a program reads `FLECHTWERK_CRASH_AT` when it
//! starts: `before-end-txn` lets it die when it gets there, `before-end-txn:3` when it gets there for the third time,
//! whichever task that is. It writes a line to stderr that names the point, and kills itself: nothing is unwound, flushed or
//! closed.

/// Dies here, if that was asked for (and the condition holds).
macro_rules! crash_point {
    ($point:ident $(if $when:expr)?) => {
        #[cfg(feature = "crash-points")]
        if true $(&& $when)? {
            $crate::crash::visit($crate::crash::CrashPoint::$point);
        }
    };
}

#[cfg(feature = "crash-points")]
pub use points::CrashPoint;
#[cfg(feature = "crash-points")]
pub(crate) use points::{answered, arm, is_armed, sent, visit};

#[cfg(feature = "crash-points")]
mod points {
    use std::ffi::OsString;
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::nearest::nearest;
    use crate::startup::Problem;

    macro_rules! points {
        ($($(#[doc = $doc:literal])+ $point:ident = $name:literal;)*) => {
            /// A step at which a process can be told to die.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum CrashPoint {
                $($(#[doc = $doc])+ $point,)*
            }

            impl CrashPoint {
                /// All of them, in the order of a task's life.
                pub const ALL: &[CrashPoint] = &[$(CrashPoint::$point),*];

                /// Its name.
                pub const fn name(self) -> &'static str {
                    match self {
                        $(CrashPoint::$point => $name,)*
                    }
                }

                /// Where that is, in a sentence.
                pub const fn what(self) -> &'static str {
                    match self {
                        $(CrashPoint::$point => concat!($($doc),+).trim_ascii(),)*
                    }
                }
            }
        };
    }

    points! {
        /// Nothing is said to the group yet.
        BeforeJoin = "before-join";
        /// The group's client is made and has subscribed.
        AfterJoin = "after-join";
        /// A JoinGroup was written to its socket.
        JoinSent = "join-sent";
        /// The answer of a JoinGroup has come, and nobody was told.
        JoinAnswered = "join-answered";
        /// An assignment has come and was answered, and nothing was done about it.
        BeforeAssign = "before-assign";
        /// The tasks that an assignment brings are started, those that it takes are told.
        AfterAssign = "after-assign";

        /// A producer is made, and has not fenced.
        BeforeFence = "before-fence";
        /// An InitProducerId was written to its socket.
        FenceSent = "fence-sent";
        /// The answer of an InitProducerId has come, and nobody was told.
        FenceAnswered = "fence-answered";
        /// The fence holds, and nothing was read behind it.
        AfterFence = "after-fence";

        /// A store must be restored, and is as it was.
        BeforeRestore = "before-restore";
        /// The store is wiped, and nothing was read.
        RestoreStart = "restore-start";
        /// A part of the changelog is in the store, and more is to come.
        RestoreMiddle = "restore-middle";
        /// All of the changelog was handed to the store, which has no stamp.
        RestoreEnd = "restore-end";
        /// The store is restored and has its stamp.
        AfterRestore = "after-restore";

        /// A batch is closed, its transaction has not begun.
        BeforeBegin = "before-begin";
        /// The transaction has begun, as only the client knows; the positions are not sent to the group.
        AfterBegin = "after-begin";
        /// A TxnOffsetCommit was written to its socket.
        OffsetsSent = "offsets-sent";
        /// The answer of a TxnOffsetCommit has come, and nobody was told.
        OffsetsAnswered = "offsets-answered";
        /// The group has the positions, within the transaction; no output is handed to the client.
        AfterSendOffsets = "after-send-offsets";
        /// All outputs are handed to the client, and no change of state.
        AfterProduceOutputs = "after-produce-outputs";
        /// All changes of state are handed to the client, which has sent what it liked to.
        AfterProduceChangelog = "after-produce-changelog";
        /// A Produce was written to its socket.
        ProduceSent = "produce-sent";
        /// The answer of a Produce has come, and nobody was told.
        ProduceAnswered = "produce-answered";
        /// All of the transaction lies in the cluster (who asks for this point waits for that), and no EndTxn was sent.
        BeforeEndTxn = "before-end-txn";
        /// An EndTxn was written to its socket.
        EndTxnSent = "end-txn-sent";
        /// The answer of an EndTxn has come, and nobody was told.
        EndTxnAnswered = "end-txn-answered";
        /// The commit has succeeded, and nothing was done about it.
        AfterEndTxn = "after-end-txn";
        /// The commit is known, and the store is as it was before.
        BeforeStoreWrite = "before-store-write";
        /// The store has the batch and its stamp.
        AfterStoreWrite = "after-store-write";

        /// The client says that the partitions are revoked, and was not answered. So it does at a clean stop as well.
        BeforeRevoke = "before-revoke";
        /// A revocation was answered, and all tasks were told.
        AfterRevoke = "after-revoke";
    }

    /// Says at which point the process is to die.
    const VARIABLE: &str = "FLECHTWERK_CRASH_AT";
    /// No point has this number.
    const NONE: u32 = u32::MAX;

    static ARMED: AtomicU32 = AtomicU32::new(NONE);
    /// Visits until the process dies, that one included.
    static LEFT: AtomicU32 = AtomicU32::new(0);

    /// The process is here, and dies if it was told to.
    #[inline]
    pub(crate) fn visit(point: CrashPoint) {
        if is_armed(point) {
            arrived(point);
        }
    }

    /// True if the process is to die there.
    pub(crate) fn is_armed(point: CrashPoint) -> bool {
        ARMED.load(Ordering::Relaxed) == point as u32
    }

    #[cold]
    fn arrived(point: CrashPoint) {
        let left = LEFT.fetch_sub(1, Ordering::SeqCst);
        if left > 1 {
            return;
        }
        // Another thread that gets here meanwhile is to die no later than this one.
        if left == 1 {
            let _ = writeln!(std::io::stderr(), "crash point {}: the process kills itself", point.name());
        }
        let _ = kill(Pid::this(), Signal::SIGKILL);
        loop {
            std::thread::park();
        }
    }

    /// A request with this number was written to its socket.
    pub(crate) fn sent(api: i16) {
        match api {
            0 => visit(CrashPoint::ProduceSent),
            11 => visit(CrashPoint::JoinSent),
            22 => visit(CrashPoint::FenceSent),
            26 => visit(CrashPoint::EndTxnSent),
            28 => visit(CrashPoint::OffsetsSent),
            _ => {}
        }
    }

    /// A request with this number was answered.
    pub(crate) fn answered(api: i16) {
        match api {
            0 => visit(CrashPoint::ProduceAnswered),
            11 => visit(CrashPoint::JoinAnswered),
            22 => visit(CrashPoint::FenceAnswered),
            26 => visit(CrashPoint::EndTxnAnswered),
            28 => visit(CrashPoint::OffsetsAnswered),
            _ => {}
        }
    }

    /// Takes the point out of what the program was given, before the settings are read.
    pub(crate) fn arm(
        mut environment: Vec<(OsString, OsString)>,
    ) -> Result<Vec<(OsString, OsString)>, Problem> {
        if let Some(at) = environment.iter().position(|(name, _)| name == VARIABLE) {
            let (point, visit) = read(&environment.remove(at).1.to_string_lossy())?;
            LEFT.store(visit, Ordering::SeqCst);
            ARMED.store(point as u32, Ordering::SeqCst);
        }
        Ok(environment)
    }

    /// Reads `NAME` or `NAME:VISIT`.
    fn read(text: &str) -> Result<(CrashPoint, u32), Problem> {
        let (name, visit) = text.split_once(':').unwrap_or((text, "1"));
        let problem = |what: String, mend: String| Problem {
            what,
            place: format!("environment variable {VARIABLE}"),
            why: "this program was compiled to die at a point that is named there, for tests".into(),
            mend,
        };
        let names = CrashPoint::ALL.iter().map(|point| point.name());
        let Some(point) = CrashPoint::ALL.iter().find(|point| point.name() == name) else {
            let near = nearest(name, names.clone()).map(|near| format!("did you mean {near}? "));
            let all: Vec<&str> = names.collect();
            let mend = format!("{}there are {}", near.unwrap_or_default(), all.join(", "));
            return Err(problem(format!("there is no crash point `{name}`"), mend));
        };
        match visit.parse() {
            Ok(visit @ 1..) => Ok((*point, visit)),
            _ => Err(problem(
                format!("`{visit}` is no number of a visit"),
                format!("write {name}, or {name}:3 for the third visit"),
            )),
        }
    }

    #[cfg(test)]
    mod tests {
        use std::collections::BTreeSet;

        use super::*;

        #[test]
        fn each_point_has_a_name_of_its_own_and_is_read_by_it() {
            let names: BTreeSet<&str> = CrashPoint::ALL.iter().map(|point| point.name()).collect();
            assert_eq!(names.len(), CrashPoint::ALL.len());
            for point in CrashPoint::ALL {
                assert_eq!(read(point.name()).unwrap(), (*point, 1));
                assert_eq!(read(&format!("{}:7", point.name())).unwrap(), (*point, 7));
                assert!(point.what().ends_with('.'), "{}", point.what());
            }
        }

        #[test]
        fn what_is_no_point_is_refused_and_what_was_meant_is_named() {
            let problem = read("before-endtxn").unwrap_err();
            assert!(problem.what.contains("`before-endtxn`"), "{}", problem.what);
            assert!(problem.mend.starts_with("did you mean before-end-txn? "), "{}", problem.mend);
            for visit in ["before-end-txn:0", "before-end-txn:", "before-end-txn:-1", "before-end-txn:x"] {
                assert!(read(visit).unwrap_err().mend.contains("before-end-txn:3"), "{visit}");
            }
        }
    }
}
