//! What keeps a resource from being made, told to who has to mend it.

use super::misfit::{Kind, Misfit, dotted};
use super::tree::{Said, Tree};
use crate::glue::{ResourceInfo, Unmade};
use crate::nearest::nearest;
use crate::runtime::chain;
use crate::startup::Problem;

/// One for each mistake.
pub(super) fn problems(info: &ResourceInfo, said: &Said, why: Unmade) -> Vec<Problem> {
    match why {
        Unmade::Settings(misfits) => {
            let told = misfits.iter().filter(|misfit| {
                // What is missing may stand where nobody could read it, and that was told.
                !matches!(misfit.kind, Kind::Missing { .. }) || said.is_whole(info.name)
            });
            told.map(|misfit| setting(info, said, misfit)).collect()
        }
        Unmade::Failed(error) => vec![Problem {
            what: format!("resource `{}` can't be made: {}", info.name, chain(&*error)),
            place: format!("function `{}`", info.id),
            why: "the stages that take it can't run without it".into(),
            mend: match info.settings {
                true => format!(
                    "mend what the message names; its settings are [resources.{}] and {}_..",
                    info.name,
                    prefix(info)
                ),
                false => "mend what the message names, then start again".into(),
            },
        }],
    }
}

fn setting(info: &ResourceInfo, said: &Said, misfit: &Misfit) -> Problem {
    let path = misfit.path();
    let name = dotted(&path);
    let what = match path.is_empty() {
        true => format!("the settings of resource `{}`: {}", info.name, misfit.what),
        false => format!("setting `{name}` of resource `{}`: {}", info.name, misfit.what),
    };
    let table = format!("[resources.{}]", info.name);
    let place = match said.of(info.name).nearest(&path) {
        _ if path.is_empty() || matches!(misfit.kind, Kind::Missing { .. }) => match &said.file {
            Some(file) => format!("{table} in {}, and the environment", file.display()),
            None => format!("{table} of a settings file (none was named), and the environment"),
        },
        Tree::Text { in_file: false, .. } => {
            let variable = variable(info, &path).unwrap_or_else(|| format!("{}_..", prefix(info)));
            format!("environment variable {variable}")
        }
        _ => {
            let file =
                said.file.as_ref().map_or("the settings file".into(), |file| file.display().to_string());
            format!("`resources.{}.{name}` in {file}", info.name)
        }
    };
    let places = |value: &str, in_variable: bool| match variable(info, &path).filter(|_| in_variable) {
        Some(variable) => {
            format!("write `{name} = {value}` under {table} in the settings file, or set {variable}")
        }
        None => format!("write `{name} = {value}` under {table} in the settings file"),
    };
    let mend = match misfit.kind {
        Kind::Missing { secret: true } => places("{ file = \"..\" }", true),
        Kind::Missing { secret: false } | Kind::NoSecret => places("..", true),
        Kind::Unknown { known } => {
            let known: Vec<&str> = known
                .iter()
                .copied()
                .filter(|known| Some(*known) != path.last().map(String::as_str))
                .collect();
            match nearest(path.last().map_or("", String::as_str), known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "remove it".into(),
                None => format!("remove it; there are {}", known.join(", ")),
            }
        }
        Kind::Wrong { .. } | Kind::Custom if path.is_empty() => {
            format!("see the settings that `{}` takes", info.id)
        }
        Kind::Wrong { .. } | Kind::Custom => {
            "mend it there; the value is not shown, since it may be a secret".into()
        }
    };
    Problem { what, place, why: String::new(), mend }
}

fn prefix(info: &ResourceInfo) -> String {
    format!("FLECHTWERK_RESOURCES_{}", info.name.to_uppercase())
}

/// The variable of a setting, if its name can be one: the case of variables does not count.
fn variable(info: &ResourceInfo, path: &[String]) -> Option<String> {
    let names: Vec<&str> =
        path.iter().map(String::as_str).take_while(|name| !name.starts_with('[')).collect();
    let plain = |name: &&str| {
        !name.contains("__") && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    names.iter().all(plain).then(|| format!("{}_{}", prefix(info), names.join("__").to_uppercase()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::{Secret, read};
    use super::*;

    const HTTP: ResourceInfo =
        ResourceInfo { name: "http", id: "demo::http", needs: &[], settings: true, stub: false };

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only read")]
    struct Settings {
        url: String,
        token: Secret<String>,
        max_size: u32,
        #[serde(default)]
        ports: Vec<u16>,
    }

    fn told(said: &Said) -> Vec<[String; 3]> {
        let misfits = read::<Settings>(said.of("http")).unwrap_err();
        let problems = problems(&HTTP, said, Unmade::Settings(misfits));
        problems.into_iter().map(|Problem { what, place, mend, .. }| [what, place, mend]).collect()
    }

    #[test]
    fn each_mistake_names_its_place_and_its_mend() {
        let mut said = Said { file: Some("demo.toml".into()), ..Said::default() };
        assert_eq!(
            told(&said),
            [
                [
                    "setting `url` of resource `http`: missing",
                    "[resources.http] in demo.toml, and the environment",
                    "write `url = ..` under [resources.http] in the settings file, or set FLECHTWERK_RESOURCES_HTTP_URL",
                ],
                [
                    "setting `token` of resource `http`: missing",
                    "[resources.http] in demo.toml, and the environment",
                    "write `token = { file = \"..\" }` under [resources.http] in the settings file, or set \
                     FLECHTWERK_RESOURCES_HTTP_TOKEN",
                ],
                [
                    "setting `maxSize` of resource `http`: missing",
                    "[resources.http] in demo.toml, and the environment",
                    "write `maxSize = ..` under [resources.http] in the settings file",
                ],
            ]
        );
        let mut http = Tree::empty();
        http.put(&["tokn"], Tree::variable("hunter2"));
        http.put(&["maxSize"], Tree::Integer(-1));
        http.put(&["ports"], Tree::variable("1,hunter2"));
        said.settings.insert("http".into(), http);
        let told = told(&said);
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
        let places: Vec<_> = told.iter().map(|[_, place, _]| place.as_str()).collect();
        let both = "[resources.http] in demo.toml, and the environment";
        assert_eq!(
            places,
            [
                "`resources.http.maxSize` in demo.toml",
                "environment variable FLECHTWERK_RESOURCES_HTTP_PORTS",
                "environment variable FLECHTWERK_RESOURCES_HTTP_TOKN",
                both,
                both
            ]
        );
        assert_eq!(told[2][2], "did you mean `token`?");
    }

    #[test]
    fn nothing_is_missing_that_may_stand_where_nobody_could_read() {
        let unread = Said { unread: true, ..Said::default() };
        assert!(told(&unread).is_empty());
        let unread_of = Said { unread_of: ["http".to_owned()].into(), ..Said::default() };
        assert!(told(&unread_of).is_empty());
        let of_another = Said { unread_of: ["ftp".to_owned()].into(), ..Said::default() };
        assert_eq!(told(&of_another).len(), 3);
    }
}
