//! Checks of a whole pipeline: what must be unique is, and no two topics have one name. One pass puts every name into a
//! hash table, so that a pipeline of many stages costs no more for each than a small one.

use super::super::{AnyStage, Listed, Need, Part, Share, StageInfo, TopicInfo};
use super::resources::{ResourceEntry, missing};
use super::text::{Message, Name, same};

/// Kafka's limit for the names of topics.
const LONGEST: usize = 249;

/// What a name is the name of; names are compared within one kind only.
#[derive(Clone, Copy)]
enum Kind {
    /// The path of a stage's function.
    Path,
    /// The name of a stage.
    Stage,
    /// The application id of a stage: its group, and the prefix of its transactional ids and its changelog.
    ///
    /// A transactional id is an application id, a hyphen and a partition number. The number holds no hyphen, so two
    /// stages share one only if their application ids are equal, not if one is the other and a number.
    Application,
    /// A topic that a stage reads or writes.
    Topic(&'static TopicInfo),
    /// The topic that a stage keeps its state in.
    Changelog,
}

#[derive(Clone, Copy)]
struct Item {
    kind: Kind,
    name: Name,
    hash: u64,
    /// Index into the list of stages.
    stage: usize,
}

/// What is wrong with an entry of a pipeline.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// Its application id makes names that are too long.
    TooLong,
    /// It takes a resource that the pipeline does not make.
    Unmade(Need),
    /// Its `mine` and an earlier stage's `theirs` clash; `exactly` or up to `.` and `_`.
    Clash {
        theirs: Item,
        mine: Item,
        exactly: bool,
    },
}

/// A stage in a list of which `cfg` may have removed some; `ordinal` is its place among all that were written.
#[derive(Clone, Copy)]
pub struct Entry {
    pub ordinal: usize,
    pub listed: Listed,
}

/// What [`check`] found, for each entry that was written.
pub struct Table<const WRITTEN: usize> {
    entries: &'static [Entry],
    faults: [Fault; WRITTEN],
}

/// What the pipeline runs.
pub const fn stages<const N: usize>(entries: &[Entry]) -> [&'static dyn AnyStage; N] {
    let mut stages = [entries[0].listed.stage; N];
    let mut n = 1;
    while n < N {
        stages[n] = entries[n].listed.stage;
        n += 1;
    }
    stages
}

/// How many places the hash table of these stages needs.
pub const fn places(entries: &[Entry]) -> usize {
    let (mut count, mut n) = (0, 0);
    while n < entries.len() {
        let info = entries[n].listed.info;
        // Path, name, application id, changelog, dead letters.
        count += 5 + info.inputs.len() + info.parts.len() + info.shared.len();
        n += 1;
    }
    (count * 2).next_power_of_two()
}

/// Checks all stages. `PLACES` is what [`places`] says.
pub const fn check<const WRITTEN: usize, const PLACES: usize>(
    pipeline: &'static str,
    entries: &'static [Entry],
    resources: &'static [ResourceEntry],
) -> Table<WRITTEN> {
    let mut table = Table { entries, faults: [Fault::None; WRITTEN] };
    let mut places: [Option<Item>; PLACES] = [None; PLACES];
    let mut n = 0;
    while n < entries.len() {
        table.faults[entries[n].ordinal] = stage(pipeline, entries, resources, n, &mut places);
        n += 1;
    }
    table
}

/// Adds the names of one stage; the first that clashes is its fault.
const fn stage(
    pipeline: &'static str,
    entries: &[Entry],
    resources: &[ResourceEntry],
    stage: usize,
    places: &mut [Option<Item>],
) -> Fault {
    let info = entries[stage].listed.info;
    macro_rules! add {
        ($kind:expr, $name:expr) => {
            if let Fault::Clash { theirs, mine, exactly } =
                add(places, Item { kind: $kind, name: $name, hash: $name.hash(), stage })
            {
                return Fault::Clash { theirs, mine, exactly };
            }
        };
    }
    add!(Kind::Path, Name::of(info.id));
    if info.stub {
        return Fault::None;
    }
    add!(Kind::Stage, Name::of(info.name));
    let application = application(pipeline, info, "");
    let changelog = self::application(pipeline, info, "-changelog");
    if changelog.len() > LONGEST {
        return Fault::TooLong;
    }
    add!(Kind::Application, application);
    let mut n = 0;
    while n < info.inputs.len() {
        add!(Kind::Topic(info.inputs[n]), Name::of(info.inputs[n].name));
        n += 1;
    }
    let (mut n, mut stateful) = (0, false);
    while n < info.parts.len() {
        match info.parts[n] {
            Part::Output(topic) => add!(Kind::Topic(topic), Name::of(topic.name)),
            Part::State(_) | Part::Timers => stateful = true,
        }
        n += 1;
    }
    let mut n = 0;
    while n < info.shared.len() {
        if let Share::Table(table) = info.shared[n] {
            add!(Kind::Topic(table.topic), Name::of(table.topic.name));
        }
        n += 1;
    }
    if let Some(topic) = info.policy.dead_letters {
        add!(Kind::Topic(topic), Name::of(topic.name));
    }
    if stateful {
        add!(Kind::Changelog, changelog);
    }
    match missing(info, resources) {
        Some(need) => Fault::Unmade(need),
        None => Fault::None,
    }
}

const fn application(pipeline: &'static str, info: &'static StageInfo, ending: &'static str) -> Name {
    match info.application_id {
        Some(id) => Name([id, "", "", ending]),
        None => Name([pipeline, "-", info.name, ending]),
    }
}

/// Puts an item into the hash table, unless it clashes with one that is there or is the same.
const fn add(places: &mut [Option<Item>], mine: Item) -> Fault {
    let mut place = mine.hash as usize % places.len();
    while let Some(theirs) = places[place] {
        if theirs.hash == mine.hash {
            let rivals = match (theirs.kind, mine.kind) {
                (Kind::Topic(one), Kind::Topic(other)) if same(one.id, other.id) => return Fault::None,
                (Kind::Topic(_) | Kind::Changelog, Kind::Topic(_) | Kind::Changelog) => true,
                (Kind::Path, Kind::Path)
                | (Kind::Stage, Kind::Stage)
                | (Kind::Application, Kind::Application) => true,
                _ => false,
            };
            if rivals && let Some(exactly) = theirs.name.compare(&mine.name) {
                // Kafka takes only topics for the same that differ in `.` and `_`.
                if exactly || matches!(mine.kind, Kind::Topic(_) | Kind::Changelog) {
                    return Fault::Clash { theirs, mine, exactly };
                }
            }
        }
        place = (place + 1) % places.len();
    }
    places[place] = Some(mine);
    Fault::None
}

impl<const WRITTEN: usize> Table<WRITTEN> {
    /// Fails the compilation if the entry that was written at this place has a fault.
    #[track_caller]
    pub const fn entry(&self, ordinal: usize) {
        match self.faults[ordinal] {
            Fault::None => {}
            Fault::TooLong => Message::new()
                .add("this stage's changelog would be named after pipeline and stage, with more than the 249 characters \
                      that Kafka allows: set a shorter `application_id = \"..\"`, or choose shorter names")
                .panic(),
            Fault::Clash { theirs, mine, exactly } => self.clash(theirs, mine, exactly),
            Fault::Unmade(need) => Message::new()
                .add("this stage takes a `&Res<")
                .add(need.type_name)
                .add(">`, which the pipeline does not make: add `")
                .add(need.id)
                .add("` to its resources, as in `pipeline!(pub DEMO = \"demo\": [..], resources = [")
                .add(need.id)
                .add("])`")
                .panic(),
        }
    }

    #[track_caller]
    const fn clash(&self, theirs: Item, mine: Item, exactly: bool) -> ! {
        let (other, this) = (self.entries[theirs.stage].listed.info, self.entries[mine.stage].listed.info);
        let message = Message::new();
        match (theirs.kind, mine.kind) {
            (Kind::Path, _) => message
                .add("stage `")
                .add(this.id)
                .add("` is listed twice, and a stage runs once in a pipeline: remove one")
                .panic(),
            (Kind::Stage, _) => message
                .add("two stages are named `")
                .add(this.name)
                .add("`, `")
                .add(other.id)
                .add("` and `")
                .add(this.id)
                .add("`, and would share group, state and transactions: give one of them a `name = \"..\"`")
                .panic(),
            (Kind::Application, _) => message
                .add("stages `")
                .add(other.name)
                .add("` and `")
                .add(this.name)
                .add("` have one application id, ")
                .quoted(mine.name)
                .add(", and would share group, state and transactions: change the `application_id` of one of them")
                .panic(),
            (Kind::Topic(one), Kind::Topic(another)) if exactly => message
                .add("two types stand for topic ")
                .quoted(mine.name)
                .add(", `")
                .add(one.id)
                .add("` (stage `")
                .add(other.name)
                .add("`) and `")
                .add(another.id)
                .add("` (stage `")
                .add(this.name)
                .add("`), and may not agree on what it holds: use one type in both places")
                .panic(),
            (Kind::Topic(one), Kind::Topic(another)) => message
                .add("topics ")
                .quoted(theirs.name)
                .add(" (`")
                .add(one.id)
                .add("`) and ")
                .quoted(mine.name)
                .add(" (`")
                .add(another.id)
                .add("`) differ only in `.` and `_`, and Kafka refuses to have both: rename one")
                .panic(),
            (Kind::Changelog, Kind::Changelog) => message
                .add("the changelogs of stages `")
                .add(other.name)
                .add("` and `")
                .add(this.name)
                .add("`, ")
                .quoted(theirs.name)
                .add(" and ")
                .quoted(mine.name)
                .add(", differ only in `.` and `_`, and Kafka refuses to have both: rename one stage")
                .panic(),
            (Kind::Topic(topic), _) => changelog_clash(message, topic, theirs.name, other, mine.name, this),
            (_, Kind::Topic(topic)) => changelog_clash(message, topic, mine.name, this, theirs.name, other),
            _ => message.add("names clash").panic(),
        }
    }
}

/// A topic has the name of a changelog.
#[track_caller]
const fn changelog_clash(
    message: Message,
    topic: &TopicInfo,
    name: Name,
    user: &StageInfo,
    changelog: Name,
    owner: &StageInfo,
) -> ! {
    message
        .add("topic ")
        .quoted(name)
        .add(" (`")
        .add(topic.id)
        .add("`, stage `")
        .add(user.name)
        .add("`) would be one with the changelog ")
        .quoted(changelog)
        .add(" that stage `")
        .add(owner.name)
        .add("` keeps its state in, which belongs to that stage alone: rename the topic")
        .panic()
}
