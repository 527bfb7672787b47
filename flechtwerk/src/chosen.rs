//! The stages that a call is about, under their names in the cluster, and whether they go in circles. Needs no cluster:
//! the part of the command line that is there without the feature `kafka` rests on it.

use std::collections::BTreeSet;

use crate::glue::{AnyStage, StageInfo};
use crate::naming::{Mapping, StageNames, list, names};
use crate::nearest::nearest;
use crate::report::Problem;

/// A stage that is to run, under its names in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) info: &'static StageInfo,
    pub(crate) names: StageNames,
}

/// The stages that are wanted, all of them where none is named; the names of all are checked, wanted or not.
pub(crate) fn choose(
    pipeline: &str,
    stages: &[&'static StageInfo],
    wanted: &[String],
    mapping: Mapping<'_>,
) -> Result<Vec<Chosen>, Vec<Problem>> {
    let known: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
    let mut problems = Vec::new();
    if stages.is_empty() {
        problems.push(Problem {
            what: "the pipeline has no stage".into(),
            place: format!("pipeline `{pipeline}`"),
            why: String::new(),
            mend: "list at least one stage in `pipeline!`".into(),
        });
    }
    let unknown: BTreeSet<&String> = wanted.iter().filter(|name| !known.contains(&name.as_str())).collect();
    for name in unknown {
        problems.push(Problem {
            what: format!("the pipeline has no stage `{name}`"),
            place: "setting `stage`".into(),
            why: String::new(),
            mend: match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its stages are {}", list(&known)),
            },
        });
    }
    match names(pipeline, stages, mapping) {
        Ok(named) if problems.is_empty() => {
            let all = stages.iter().zip(named).map(|(info, names)| Chosen { info, names });
            let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|stage| stage == name);
            Ok(all.filter(|chosen| is_wanted(chosen.info.name)).collect())
        }
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// The constant descriptions of a pipeline's stages.
pub(crate) fn infos(stages: &'static [&'static dyn AnyStage]) -> Vec<&'static StageInfo> {
    stages.iter().map(|stage| stage.info()).collect()
}

/// What is worth saying about stages that read what they write, directly or by way of each other. That is allowed: a
/// record may be meant to go round until it is done.
pub(crate) fn loops(stages: &[Chosen]) -> Vec<String> {
    let feeds =
        |from: &Chosen, to: &Chosen| from.names.outputs.iter().any(|topic| to.names.inputs.contains(topic));
    let mut reaches: Vec<Vec<bool>> =
        stages.iter().map(|from| stages.iter().map(|to| feeds(from, to)).collect()).collect();
    for by in 0..stages.len() {
        for from in 0..stages.len() {
            for to in 0..stages.len() {
                reaches[from][to] |= reaches[from][by] && reaches[by][to];
            }
        }
    }
    let mut told = BTreeSet::new();
    let mut warnings = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let circle: Vec<&Chosen> = (0..stages.len())
            .filter(|other| reaches[index][*other] && reaches[*other][index])
            .map(|other| &stages[other])
            .collect();
        let own: Vec<&str> = stage
            .names
            .outputs
            .iter()
            .filter(|topic| stage.names.inputs.contains(topic))
            .map(|topic| &**topic)
            .collect();
        if !own.is_empty() {
            warnings.push(format!(
                "stage `{}` writes its own input {}: what it sends there comes back to it, without end unless the \
                 stage ends it",
                stage.names.stage,
                list(&own)
            ));
        }
        let names: Vec<&str> = circle.iter().map(|chosen| chosen.names.stage).collect();
        if names.len() > 1 && told.insert(names.clone()) {
            let between: BTreeSet<&str> = circle
                .iter()
                .flat_map(|from| from.names.outputs.iter())
                .filter(|topic| circle.iter().any(|to| to.names.inputs.contains(topic)))
                .map(|topic| &**topic)
                .collect();
            warnings.push(format!(
                "stages {} go in a circle by way of {}: records come round again, without end unless a stage ends it",
                list(&names),
                list(&between.into_iter().collect::<Vec<_>>())
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::demo::{AGAIN, ASK, COUNT, ENRICH, MERGE, REPLY};

    fn warnings(stages: &[&'static StageInfo]) -> Vec<String> {
        let unmapped = BTreeMap::new();
        let mapping = Mapping::of("", &unmapped);
        loops(&choose("demo", stages, &[], mapping).unwrap())
    }

    #[test]
    fn a_stage_that_writes_its_own_input_is_worth_a_warning() {
        let found = warnings(&[&COUNT, &AGAIN]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("stage `again` writes its own input `words`"), "{found:#?}");
    }

    #[test]
    fn a_circle_of_stages_is_one_warning() {
        let found = warnings(&[&ASK, &COUNT, &REPLY]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].starts_with("stages `ask` and `reply` go in a circle by way of `alerts` and `counts`"),
            "{found:#?}"
        );
        assert!(warnings(&[&ASK]).is_empty());
    }

    #[test]
    fn a_pipeline_without_circles_has_no_warning() {
        assert!(warnings(&[&COUNT, &ENRICH, &MERGE]).is_empty());
    }
}
