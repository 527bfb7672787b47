//! What happens in a history beside the work itself: records that come in, and faults. A plan follows from its seed; shrinking
//! leaves parts of it out, and a line of text names it.

use std::fmt;
use std::str::FromStr;

use crate::chance::Chance;

/// Microseconds of simulated time.
pub type Micros = u64;

/// One millisecond.
pub const MS: Micros = 1_000;

/// The operation of a record that does not decode: no text begins with this byte.
pub const INVALID: u8 = 0xff;

/// What becomes of a request, or of all on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The connection breaks before the request has arrived.
    CutBefore,
    /// The connection breaks once the request was carried out, before the answer.
    CutAfter,
    /// The connection breaks, and the request arrives all the same, so much later.
    Late(Micros),
    /// The request takes so much longer, with all behind it on its connection.
    Slow(Micros),
    /// The request is carried out, and from then on nothing is heard of its node, for so long.
    Deafen(Micros),
    /// Request or answer are lost without a word: the client finds out by its time-out.
    Silent,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// To the n-th request of this kind: an index into [`crate::wire::KINDS`].
    Request(usize, u32, Wire),
    /// SIGKILL, and a new start after so long.
    Kill(usize, Micros),
    /// SIGSTOP for so long.
    Pause(usize, Micros),
    /// A clean stop, and a new start after so long.
    Stop(usize, Micros),
    /// The machine loses power: what was written since the last flush may be gone.
    Power(usize, Micros),
    /// The state folder is gone with the process.
    Wipe(usize, Micros),
    /// Coordinators move: for so long they answer that they are elsewhere, then they know what the journal says.
    Move(Micros),
    /// Markers of transactions take so long, for a while.
    Markers(Micros),
    /// Changelogs are compacted.
    Compact,
    /// What readers see of a changelog lags behind, for so long.
    Lag(Micros),
    /// A node hears nothing (or, if `true`, is not heard though it does what it is asked), for so long.
    Deaf(usize, bool, Micros),
    /// A foreign producer has a transaction open in a changelog, for so long, and aborts it.
    Foreign(Micros),
}

/// A record that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// When.
    pub at: Micros,
    /// Input.
    pub input: usize,
    /// Partition.
    pub partition: i32,
    /// Which key.
    pub key: u8,
    /// What it does to the state: `s`, `d`, `u`, `n`; or [`INVALID`].
    pub operation: u8,
    /// How it is written.
    pub how: How,
}

/// How a record that comes in is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Outside of any transaction.
    Plainly,
    /// In a transaction that commits after so long.
    Committed(Micros),
    /// In a transaction that is aborted after so long: a canary.
    Aborted(Micros),
}

/// A history before it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What all chance follows from.
    pub seed: u64,
    /// Processes.
    pub processes: usize,
    /// Partitions.
    pub partitions: i32,
    /// Inputs: 1 or 2.
    pub inputs: usize,
    /// All processes have static ids.
    pub fixed: bool,
    /// State in memory, else on disk.
    pub memory: bool,
    /// Records.
    pub records: Vec<Coming>,
    /// Faults, each with its time; that of a fault to a request does not count.
    pub faults: Vec<(Micros, Fault)>,
    /// Which records and faults were left out, by their place in the plan of the seed.
    pub without: Without,
}

/// What shrinking has taken from a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Records.
    pub records: Vec<usize>,
    /// Faults.
    pub faults: Vec<usize>,
    /// Processes that are too many.
    pub processes: usize,
}

/// Faults come in this time; after it nothing breaks any more.
pub const FAULTS: Micros = 2_500 * MS;

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Plan {
        Plan::without(seed, Without::default())
    }

    /// The plan of a seed, with less in it.
    pub fn without(seed: u64, without: Without) -> Plan {
        let mut chance = Chance::new(seed, 1);
        let processes = 1 + chance.below(3) as usize;
        let partitions = 1 + chance.below(2) as i32;
        let inputs = if chance.one_in(4) { 2 } else { 1 };
        let (fixed, memory) = (chance.one_in(4), chance.one_in(3));
        let keep = |index: usize, left_out: &[usize]| !left_out.contains(&index);
        let count = chance.range(6, 20);
        let mut records = (0..count)
            .map(|_| Coming {
                at: if chance.one_in(4) { 0 } else { chance.below(FAULTS) },
                input: chance.below(inputs as u64) as usize,
                partition: chance.below(partitions as u64) as i32,
                key: chance.below(3) as u8,
                operation: b"sssssdun"[chance.below(8) as usize],
                how: match chance.below(8) {
                    0 => How::Committed(chance.below(60 * MS)),
                    1 => How::Aborted(chance.below(60 * MS)),
                    _ => How::Plainly,
                },
            })
            .collect::<Vec<_>>();
        let mut spoils = Chance::new(seed, 4);
        for record in &mut records {
            if spoils.one_in(16) {
                record.operation = INVALID;
            }
        }
        let count = chance.below(7);
        let faults = (0..count)
            .map(|_| {
                let at = chance.below(FAULTS);
                (at, fault(&mut chance, processes))
            })
            .collect::<Vec<_>>();
        let left = |index: &usize| keep(*index, &without.records);
        let records =
            records.iter().enumerate().filter(|(index, _)| left(index)).map(|(_, one)| *one).collect();
        let left = |index: &usize| keep(*index, &without.faults);
        let faults =
            faults.iter().enumerate().filter(|(index, _)| left(index)).map(|(_, one)| *one).collect();
        let processes = processes.saturating_sub(without.processes).max(1);
        Plan { seed, processes, partitions, inputs, fixed, memory, records, faults, without }
    }
}

fn fault(chance: &mut Chance, processes: usize) -> Fault {
    let process = chance.below(processes as u64) as usize;
    match chance.below(20) {
        0..=8 => {
            let kind = chance.below(crate::wire::KINDS.len() as u64) as usize;
            let nth = if chance.one_in(2) { chance.below(4) } else { chance.below(25) } as u32;
            let wire = match chance.below(9) {
                0 | 1 => Wire::CutBefore,
                2 | 3 => Wire::CutAfter,
                4 | 5 => {
                    let most = if chance.one_in(2) { 30 } else { 900 };
                    Wire::Late(chance.range(MS, most * MS))
                }
                6 => Wire::Slow(chance.range(MS, 2_000 * MS)),
                7 => Wire::Deafen(chance.range(500 * MS, 4_500 * MS)),
                _ => Wire::Silent,
            };
            Fault::Request(kind, nth, wire)
        }
        9..=11 => Fault::Kill(process, chance.range(5 * MS, 1_500 * MS)),
        12 | 13 => Fault::Pause(process, chance.range(100 * MS, 3_500 * MS)),
        14 => Fault::Stop(process, chance.range(5 * MS, 800 * MS)),
        15 => Fault::Move(chance.range(MS, 300 * MS)),
        16 => Fault::Markers(chance.range(5 * MS, 600 * MS)),
        17 => match chance.below(3) {
            0 => Fault::Power(process, chance.range(5 * MS, 800 * MS)),
            1 => Fault::Wipe(process, chance.range(5 * MS, 800 * MS)),
            _ => Fault::Compact,
        },
        18 if chance.one_in(2) => Fault::Deaf(
            chance.below(crate::wire::NODES as u64) as usize,
            chance.one_in(2),
            chance.range(100 * MS, 4_000 * MS),
        ),
        18 => Fault::Lag(chance.range(50 * MS, 900 * MS)),
        _ => Fault::Foreign(chance.range(20 * MS, 700 * MS)),
    }
}

/// `SEED`, or `SEED-rA,B-fC,D-pN`: without the records A and B, the faults C and D, and N of the processes.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        let list = |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        if !self.without.records.is_empty() {
            write!(f, "-r{}", list(&self.without.records))?;
        }
        if !self.without.faults.is_empty() {
            write!(f, "-f{}", list(&self.without.faults))?;
        }
        if self.without.processes > 0 {
            write!(f, "-p{}", self.without.processes)?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Plan, String> {
        let wrong = || format!("`{text}` is no plan: SEED, or SEED-rA,B-fC,D-pN as a failed run prints it");
        let mut parts = text.split('-');
        let seed = parts.next().and_then(|seed| seed.parse().ok()).ok_or_else(wrong)?;
        let mut without = Without::default();
        for part in parts {
            let numbers = part.get(1..).ok_or_else(wrong)?.split(',').map(|number| number.parse::<usize>());
            let numbers = numbers.collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
            match part.as_bytes().first() {
                Some(b'r') => without.records = numbers,
                Some(b'f') => without.faults = numbers,
                Some(b'p') => without.processes = numbers.first().copied().ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(Plan::without(seed, without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_its_text() {
        let without = Without { records: vec![0, 2], faults: vec![1], processes: 1 };
        for plan in [Plan::of(7), Plan::without(11, without)] {
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        assert!("x".parse::<Plan>().is_err());
        assert!("7-q1".parse::<Plan>().is_err());
    }
}
