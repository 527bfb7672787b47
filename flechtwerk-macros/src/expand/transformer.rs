//! `#[transformer(inputs = [..], ..)]`.
//!
//! The function itself is emitted first and as it was written. Beside it stands a struct of the same name (functions and
//! types have names of their own), which `pipeline!` finds under the function's path. What it implements lies in an
//! unnamed constant, so that nothing else becomes visible.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;

use super::{invalid, timers};
use crate::errors::Errors;
use crate::item::{self, Function};
use crate::model::{self, Polling, Stage};
use crate::spans::{alias_shown_as, call_shown_as, constant_of, ends, passed_shown_as, shown_at, written};

pub(crate) fn transformer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = model::arguments(arguments, &mut errors);
    let function = match item::function(&item, "transformer") {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            let errors = errors.to_tokens();
            return quote!(#item #errors);
        }
    };
    let stage = model::stage(&args, &function, &mut errors);
    let krate = &args.krate;
    let generated = match stage {
        Some(stage) => expand(&stage, &function, &quote!(#krate::glue)),
        // Inside an `impl`, where a method stands, nothing else may.
        None if function.signature.receiver().is_some() => return with_errors(&item, &errors),
        None => stand_in(&function, &quote!(#krate::glue)),
    };
    let meant = if errors.is_empty() { None } else { function.with_parameters_as_meant() };
    around(&meant.unwrap_or(item), &function, &errors, &generated)
}

/// The function, with what is generated beside it.
pub(super) fn around(
    item: &TokenStream,
    function: &Function,
    errors: &Errors,
    generated: &TokenStream,
) -> TokenStream {
    let errors = errors.to_tokens();
    let name = &function.signature.ident;
    let visibility = &function.visibility;
    let cfgs = item::cfgs(&function.attributes);
    quote! {
        #item
        #errors
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
        #visibility struct #name {}
        #(#cfgs)*
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated, non_camel_case_types, refining_impl_trait)]
        const _: () = {
            #generated
        };
    }
}

pub(super) fn with_errors(item: &TokenStream, errors: &Errors) -> TokenStream {
    let errors = errors.to_tokens();
    quote!(#item #errors)
}

/// A stage that does nothing, in the place of one with mistakes: a pipeline that lists it is no error as well.
pub(super) fn stand_in(function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    let text = name.unraw().to_string();
    let info = info(
        &text,
        glue,
        quote! {
            application_id: ::core::option::Option::None,
            inputs: &[],
            parts: &[],
            shared: &[],
            start: #glue::Start::Earliest,
            order: #glue::Order::Inputs,
            custom_key: false,
            headers: true,
            extractor: ::core::option::Option::None,
            policy: #glue::Policy::CRASH,
            stub: true,
        },
        &text,
    );
    quote! {
        struct __Stage;
        impl #glue::Listable for #name {
            const LISTED: #glue::Listed = #glue::listed::<__Stage>();
        }
        impl #glue::Stage for __Stage {
            const INFO: &'static #glue::StageInfo = #info;
            type Input = ();
            type Topics = ();
            type Slots = ();
            type Shared = ();
            fn call(_: (), _: &mut (), _: &()) -> #glue::Ready {
                #glue::ready()
            }
        }
    }
}

fn info(name: &str, glue: &TokenStream, rest: TokenStream, function: &str) -> TokenStream {
    quote! {
        &#glue::StageInfo {
            name: #name,
            id: concat!(module_path!(), "::", #function),
            #rest
        }
    }
}

/// `()` around all of `inner`, each in a pair with the rest: `(A, (B, ()))`.
pub(super) fn nested(inner: impl DoubleEndedIterator<Item = TokenStream>) -> TokenStream {
    inner.rev().fold(quote!(()), |rest, first| quote!((#first, #rest)))
}

/// The name that stands for a topic in `inputs`, so that a topic which does not exist is named once.
pub(super) fn topic_alias(n: usize) -> Ident {
    format_ident!("__T{n}")
}

fn expand(stage: &Stage, function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    // These are named at the function's name: what rustc suggests about an unknown type in the signature it then
    // suggests about them as well, takes all for one error, and shows it once.
    let input = format_ident!("__Input", span = name.span());
    let checked = name;
    let ty = &stage.input;
    let proof = call_shown_as(ty, quote!(#glue::input_type), quote!(::<#ty>), quote!(()));
    let topic_aliases: Vec<_> = (0..stage.inputs.len()).map(topic_alias).collect();
    let topic_types = &stage.inputs;
    let topics = nested(topic_aliases.iter().map(|topic| quote!(#topic)));
    let slots = nested(stage.slots.iter().map(|slot| quote!(#slot)));
    let shared = nested(stage.shared.iter().map(|shared| quote!(#shared)));
    let returns = &stage.returns;
    let checks = checks(stage, &input, glue);
    let info = stage_info(stage, &name.unraw().to_string(), glue);
    let key = key(stage, glue, &quote!(#glue::Stage), &quote!(Input));
    let (dead_letters, on_invalid) =
        (invalid::dead_letters(stage, name, glue), invalid::on_invalid(stage, glue));
    let call = call(stage, name, glue);
    let on_timer = timers::on_timer(stage, glue);
    quote! {
        struct __Stage;
        impl #glue::Listable for #name {
            const LISTED: #glue::Listed = #glue::listed::<__Stage>();
        }
        const _: () = {
            #(type #topic_aliases = #topic_types;)*
            type #input = <#ty as #glue::CheckedBy<{ #proof }>>::It;
            #dead_letters
            // All that may be wrong with the types is found in this one constant. They pass only with its value, so that
            // what is wrong is an error once. Errors name the alias, so it has the function's name.
            type #checked = <(#input, #topics, #slots, #shared, #returns) as #glue::CheckedBy<{ #checks }>>::It;
            impl #glue::Stage for __Stage {
                const INFO: &'static #glue::StageInfo = #info;
                type Input = <#checked as #glue::Checked>::Input;
                type Topics = <#checked as #glue::Checked>::Topics;
                type Slots = <#checked as #glue::Checked>::Slots;
                type Shared = <#checked as #glue::Checked>::Shared;
                #key
                #on_invalid
                #call
                #on_timer
            }
        };
    }
}

/// The checks, as the contents of a block whose value is the proof; of those that only constants can tell, the first
/// that fails is reported.
pub(super) fn checks(stage: &Stage, input: &Ident, glue: &TokenStream) -> TokenStream {
    let shown_input = alias_shown_as(&stage.input, glue, input);
    // State belongs to the bytes of a key, so they must mean the same in all inputs.
    let record_keys = identified(stage) && stage.key.is_none();
    let inputs = stage.inputs.iter().enumerate().map(|(n, topic)| {
        let (alias, first) = (topic_alias(n), topic_alias(0));
        let like = match n {
            1.. if record_keys => quote!(#glue::KeyOf<#first>),
            _ => quote!(#glue::AnyKey),
        };
        let topic_type = passed_shown_as(topic, quote!(#alias as #glue::With<#input>), "It");
        call_shown_as(topic, quote!(#glue::input), quote!(::<#shown_input, #topic_type, #like>), quote!(()))
    });
    let slots = stage.slots.iter().map(|slot| slot_check(slot, stage.state.as_ref(), glue));
    let shared = stage.shared.iter().map(|shared| {
        let role = passed_shown_as(shared, quote!(#shared as #glue::SharedParam), "Role");
        constant_of(&role, &quote!(#glue::FitsByRef<#shared>), "SHARES", ends(shared).1)
    });
    let returns = &stage.returns;
    let returned = match stage.polling {
        None => quote!(#glue::Outcome),
        Some(_) => quote!(#glue::Polled),
    };
    let returned = constant_of(&quote!(#returns), &returned, "PROOF", ends(returns).1);
    let (input_count, slot_count, shared_count) = (stage.inputs.len(), stage.slots.len(), stage.shared.len());
    let calls = calls(stage, glue);
    let inputs =
        (input_count > 0).then(|| quote!(let inputs: [#glue::InputCheck; #input_count] = [#(#inputs),*];));
    quote! {
        #inputs
        let slots: [&[#glue::Part]; #slot_count] = [#(#slots),*];
        let shared: [&[#glue::Share]; #shared_count] = [#(#shared),*];
        #(#calls;)*
        #returned
    }
}

/// The check of a parameter by `&mut`: its role, and the state that it keeps where the attribute names one.
fn slot_check(slot: &Type, state: Option<&Type>, glue: &TokenStream) -> TokenStream {
    let last = ends(slot).1;
    let part = |name| passed_shown_as(slot, quote!(#slot as #glue::SlotParam), name);
    let role = constant_of(&part("Role"), &quote!(#glue::FitsByMut), "PROOF", last);
    let kept = state.map(|state| constant_of(&part("Keeps"), &quote!(#glue::KeptAs<#state>), "PROOF", last));
    let parts = call_shown_as(slot, quote!(#glue::slot), quote!(::<#slot>), quote!());
    quote!(#parts(&[#role, #kept]))
}

/// Its keys tell something apart: states, timers, or the configs of an extractor.
fn identified(stage: &Stage) -> bool {
    stage.state.is_some() || stage.on_timer.is_some() || stage.polling.is_some()
}

/// Calls that fail where something is wrong with names or numbers.
fn calls(stage: &Stage, glue: &TokenStream) -> Vec<TokenStream> {
    let mut calls = vec![];
    calls.extend(timers::taken(stage, glue));
    let mut check = |subject: &Type, function: TokenStream, arguments: TokenStream| {
        calls.push(call_shown_as(subject, quote!(#glue::#function), quote!(), arguments));
    };
    if !stage.inputs.is_empty() {
        let text = written(&stage.input);
        check(&stage.input, quote!(inputs_complete), quote!((#text, &inputs)));
    }
    for (n, topic) in stage.inputs.iter().enumerate().skip(1) {
        check(topic, quote!(input_once), quote!((&inputs, #n)));
    }
    if let Some(state) = &stage.state {
        let text = written(state);
        check(state, quote!(state_taken), quote!((#text, &slots)));
    }
    if identified(stage) && stage.key.is_none() {
        for (n, topic) in stage.inputs.iter().enumerate() {
            check(topic, quote!(key_not_null), quote!((inputs[#n].info)));
        }
    }
    if let Some(topic) = &stage.dead_letters {
        let info = invalid::dead_letters_info(glue);
        check(topic, quote!(dead_letters_apart), quote!((#info, &inputs, &slots)));
    }
    for (n, slot) in stage.slots.iter().enumerate() {
        if stage.state.is_none() {
            check(slot, quote!(state_said), quote!((slots[#n])));
        }
        check(slot, quote!(parameter), quote!((&slots, #n)));
        match (&stage.polling, &stage.on_timer) {
            (Some(_), _) => check(slot, quote!(no_timers), quote!((&slots, #n))),
            (None, None) => check(slot, quote!(timers_heard), quote!((&slots, #n))),
            (None, Some(_)) => {}
        }
    }
    for (n, shared) in stage.shared.iter().enumerate().filter(|_| !stage.inputs.is_empty()) {
        check(shared, quote!(not_an_input), quote!((&inputs, shared[#n])));
    }
    calls
}

/// A parameter is made of so many parts at most.
const MOST_PARTS: usize = 6;

pub(super) fn stage_info(stage: &Stage, function: &str, glue: &TokenStream) -> TokenStream {
    let application_id = match &stage.application_id {
        Some(id) => quote!(::core::option::Option::Some(#id)),
        None => quote!(::core::option::Option::None),
    };
    // Taken from the checked types, not named again.
    let mut rest = quote!(Self::Topics);
    let topics: Vec<_> = stage
        .inputs
        .iter()
        .map(|_| {
            let topic = quote!(<#rest as #glue::Pair>::First);
            rest = quote!(<#rest as #glue::Pair>::Second);
            topic
        })
        .collect();
    let most = stage.slots.len() * MOST_PARTS;
    let shared = match stage.shared.len() * MOST_PARTS {
        0 => quote!(&[]),
        most => quote!(#glue::AllShares::<Self::Shared, #most>::LIST),
    };
    let (start, order) = (format_ident!("{}", stage.start), format_ident!("{}", stage.order));
    let (custom_key, headers) = (stage.key.is_some(), stage.headers);
    let extractor = match &stage.polling {
        None => quote!(::core::option::Option::None),
        Some(Polling { interval, suspended }) => {
            let suspends = suspended.is_some();
            quote!(::core::option::Option::Some(#glue::ExtractorInfo {
                poll_interval: #glue::Duration::from_millis(#interval),
                suspends: #suspends,
            }))
        }
    };
    let policy = invalid::policy(stage, glue);
    info(
        &stage.name,
        glue,
        quote! {
            application_id: #application_id,
            inputs: &[#(<#topics as #glue::Topic>::INFO),*],
            parts: #glue::AllParts::<Self::Slots, #most>::LIST,
            shared: #shared,
            start: #glue::Start::#start,
            order: #glue::Order::#order,
            custom_key: #custom_key,
            headers: #headers,
            extractor: #extractor,
            policy: #policy,
            stub: false,
        },
        function,
    )
}

/// The function that computes state keys. `input` is the type that it takes.
pub(super) fn key(
    stage: &Stage,
    glue: &TokenStream,
    decoder: &TokenStream,
    input: &TokenStream,
) -> Option<TokenStream> {
    let path = stage.key.as_ref()?;
    let generics = shown_at(quote!(::<<Self as #decoder>::#input, _>), ends(path).0);
    let compute = call_shown_as(path, quote!(#glue::key), generics, quote!((#path, &input)));
    Some(quote! {
        fn key(raw: &#glue::RawRecord) -> #glue::Tried<#glue::Bytes> {
            let input = <Self as #decoder>::decode(raw)?;
            #compute
        }
    })
}

/// The parameters after the first, as they are passed: places in the nested pairs `slots` and `shared`.
pub(super) fn arguments(stage: &Stage) -> Vec<TokenStream> {
    let (mut slots, mut shared) = (quote!(slots), quote!(shared));
    let arguments = stage.by_mut.iter().map(|by_mut| match by_mut {
        true => {
            let slot = quote!(&mut #slots.0);
            slots = quote!(#slots.1);
            slot
        }
        false => {
            let one = quote!(&#shared.0);
            shared = quote!(#shared.1);
            one
        }
    });
    arguments.collect()
}

/// The call of the function. A future that is not `Send` is reported at the function's name.
fn call(stage: &Stage, name: &Ident, glue: &TokenStream) -> TokenStream {
    let span = name.span();
    let arguments = arguments(stage);
    let called = quote_spanned!(span=> #name(input #(, #arguments)*));
    let output = quote!(<#name as #glue::Checked>::Returns);
    let future = shown_at(quote!(impl #glue::Future<Output = #output> + #glue::Send), span);
    quote! {
        fn call(input: Self::Input, slots: &mut Self::Slots, shared: &Self::Shared) -> #future {
            #called
        }
    }
}
