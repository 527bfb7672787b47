//! `#[transformer(inputs = [..], ..)]`.
//!
//! The function itself is emitted first and as it was written. Beside it stands a struct of the same name (functions and
//! types have names of their own), which `pipeline!` finds under the function's path. What it implements lies in an
//! unnamed constant, so that nothing else becomes visible.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;

use crate::errors::Errors;
use crate::item::{self, Function};
use crate::model::{self, Stage};
use crate::spans::{alias_shown_as, call_shown_as, ends, passed_shown_as, shown_at, written};

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
        #[allow(clippy::all, private_interfaces, unused_variables)]
        const _: () = {
            #generated
        };
    }
}

fn with_errors(item: &TokenStream, errors: &Errors) -> TokenStream {
    let errors = errors.to_tokens();
    quote!(#item #errors)
}

/// A stage that does nothing, in the place of one with mistakes: a pipeline that lists it is no error as well.
fn stand_in(function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    let text = name.unraw().to_string();
    let info = info(
        &text,
        glue,
        quote! {
            application_id: ::core::option::Option::None,
            inputs: &[],
            parts: &[],
            start: #glue::Start::Earliest,
            order: #glue::Order::Inputs,
            custom_key: false,
            stub: true,
        },
        &text,
    );
    quote! {
        impl #glue::Stage for #name {
            const INFO: &'static #glue::StageInfo = #info;
            type Input = ();
            type Slots = ();
            fn decode(_: &#glue::RawRecord) -> ::core::result::Result<(), #glue::Trouble> {
                #glue::no_input()
            }
            fn key(raw: &#glue::RawRecord) -> ::core::result::Result<#glue::Bytes, #glue::Trouble> {
                #glue::record_key(raw)
            }
            fn open(_: &mut #glue::Opening<'_>) -> ::core::result::Result<(), #glue::Trouble> {
                ::core::result::Result::Ok(())
            }
            fn begin(_: &mut (), _: &#glue::RawRecord) {}
            fn check(_: &mut ()) -> ::core::result::Result<usize, #glue::Trouble> {
                ::core::result::Result::Ok(0)
            }
            fn close(_: &mut (), _: &mut #glue::Closing<'_>) -> ::core::result::Result<(), #glue::Trouble> {
                ::core::result::Result::Ok(())
            }
            async fn call(_: (), _: &mut ()) -> ::core::result::Result<(), #glue::BoxError> {
                ::core::result::Result::Ok(())
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

/// A parameter after the input: its type, and what was generated for it.
struct Slot<'a> {
    ty: &'a Type,
    alias: Ident,
    table: Ident,
    field: Ident,
}

fn expand(stage: &Stage, function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    let function_text = name.unraw().to_string();
    let slots: Vec<Slot<'_>> = stage
        .slots
        .iter()
        .enumerate()
        .map(|(n, ty)| Slot {
            ty,
            alias: format_ident!("__P{}", n + 1, span = name.span()),
            table: format_ident!("__V{}", n + 1),
            field: format_ident!("p{}", n + 1),
        })
        .collect();
    let input_tables = input_tables(stage, name, glue);
    let slot_tables = slot_tables(stage, &slots, glue);
    let checks = checks(stage, &slots, glue);
    let info = stage_info(stage, &function_text, glue);
    let decode = (0..stage.inputs.len()).map(|n| {
        let (table, n) = (format_ident!("__T{n}"), n as u16);
        quote!(#n => (#table.decode)(raw)?,)
    });
    let key = key(stage, glue);
    let call = call(stage, name, &slots, glue);
    let input = alias_shown_as(&stage.input, glue, &format_ident!("__Input", span = name.span()));
    let (fields, tables): (Vec<_>, Vec<_>) = slots.iter().map(|slot| (&slot.field, &slot.table)).unzip();
    let types = slots.iter().map(|slot| alias_shown_as(slot.ty, glue, &slot.alias));
    quote! {
        #input_tables
        #slot_tables
        #checks
        pub struct __Taken {
            input: #input,
        }
        pub struct __Slots {
            #(#fields: #types,)*
        }
        impl #glue::Stage for #name {
            const INFO: &'static #glue::StageInfo = #info;
            type Input = __Taken;
            type Slots = __Slots;
            fn decode(raw: &#glue::RawRecord) -> ::core::result::Result<__Taken, #glue::Trouble> {
                let input = match raw.input {
                    #(#decode)*
                    _ => #glue::no_input()?,
                };
                ::core::result::Result::Ok(__Taken { input })
            }
            #key
            fn open(opening: &mut #glue::Opening<'_>) -> ::core::result::Result<__Slots, #glue::Trouble> {
                ::core::result::Result::Ok(__Slots {
                    #(#fields: (#tables.open)(opening)?,)*
                })
            }
            fn begin(slots: &mut __Slots, raw: &#glue::RawRecord) {
                #((#tables.begin)(&mut slots.#fields, raw);)*
            }
            fn check(slots: &mut __Slots) -> ::core::result::Result<usize, #glue::Trouble> {
                ::core::result::Result::Ok(0 #(+ (#tables.check)(&mut slots.#fields)?)*)
            }
            fn close(
                slots: &mut __Slots,
                closing: &mut #glue::Closing<'_>,
            ) -> ::core::result::Result<(), #glue::Trouble> {
                #((#tables.close)(&mut slots.#fields, closing)?;)*
                ::core::result::Result::Ok(())
            }
            #call
        }
    }
}

/// The type of the input, and one table for each topic in `inputs`.
fn input_tables(stage: &Stage, name: &Ident, glue: &TokenStream) -> TokenStream {
    // These are named at the function's name: what rustc suggests about an unknown type in the signature it then
    // suggests about them as well, takes all for one error, and shows it once.
    let alias = format_ident!("__Input", span = name.span());
    let ty = &stage.input;
    let input = alias_shown_as(ty, glue, &alias);
    // State belongs to the bytes of a key, so they must mean the same in all inputs.
    let record_keys = stage.state.is_some() && stage.key.is_none();
    let mut infos = vec![];
    let mut tables = vec![];
    for (n, topic) in stage.inputs.iter().enumerate() {
        let table = format_ident!("__T{n}");
        let like = match &stage.inputs[0] {
            first if n > 0 && record_keys => quote!(#glue::KeyOf<#first>),
            _ => quote!(#glue::AnyKey),
        };
        let topic_type = passed_shown_as(topic, quote!(#topic as #glue::CheckedBy<__CHECKED>), "It");
        let make =
            call_shown_as(topic, quote!(#glue::input), quote!(::<#input, #topic_type, #like>), quote!(()));
        tables.push(quote!(const #table: #glue::InputVt<#alias> = #make;));
        infos.push(quote!(#table.info));
    }
    let checked = format_ident!("__checked", span = name.span());
    let check = call_shown_as(ty, quote!(#glue::input_type), quote!(::<#ty>), quote!(()));
    quote! {
        const fn #checked() -> usize {
            #check
        }
        const __CHECKED: usize = #checked();
        type #alias = <#ty as #glue::CheckedBy<__CHECKED>>::It;
        #(#tables)*
        const __INPUTS: &[&#glue::TopicInfo] = &[#(#infos),*];
    }
}

/// One table for each other parameter.
fn slot_tables(stage: &Stage, slots: &[Slot<'_>], glue: &TokenStream) -> TokenStream {
    let declared = match &stage.state {
        Some(state) => quote!(#glue::Says<#state>),
        None => quote!(#glue::NoState),
    };
    let tables = slots.iter().map(|slot| {
        let Slot { ty, alias, table, .. } = slot;
        let shown = alias_shown_as(ty, glue, alias);
        let make = call_shown_as(ty, quote!(#glue::slot), quote!(::<#shown, #declared>), quote!(()));
        quote! {
            type #alias = #ty;
            const #table: #glue::SlotVt<#alias> = #make;
        }
    });
    let parts = slots.iter().map(|slot| &slot.table);
    quote! {
        #(#tables)*
        const __PARAMETERS: &[&[#glue::Part]] = &[#(#parts.parts),*];
        const __PARTS: [#glue::Part; #glue::count_parts(__PARAMETERS)] = #glue::all_parts(__PARAMETERS);
    }
}

/// What only constants can tell.
fn checks(stage: &Stage, slots: &[Slot<'_>], glue: &TokenStream) -> TokenStream {
    let mut calls = vec![];
    let text = written(&stage.input);
    let arguments = quote!((#text, __INPUTS, __T0.takes));
    calls.push(call_shown_as(&stage.input, quote!(#glue::inputs_complete), quote!(), arguments));
    if let Some(state) = &stage.state {
        let text = written(state);
        calls.push(call_shown_as(state, quote!(#glue::state_taken), quote!(), quote!((#text, &__PARTS))));
        if stage.key.is_none() {
            for (n, topic) in stage.inputs.iter().enumerate() {
                let table = format_ident!("__T{n}");
                calls.push(call_shown_as(
                    topic,
                    quote!(#glue::key_not_null),
                    quote!(),
                    quote!((#table.info)),
                ));
            }
        }
    }
    for (n, slot) in slots.iter().enumerate() {
        calls.push(call_shown_as(slot.ty, quote!(#glue::parameter), quote!(), quote!((__PARAMETERS, #n))));
    }
    quote!(#(const _: () = #calls;)*)
}

fn stage_info(stage: &Stage, function: &str, glue: &TokenStream) -> TokenStream {
    let application_id = match &stage.application_id {
        Some(id) => quote!(::core::option::Option::Some(#id)),
        None => quote!(::core::option::Option::None),
    };
    let (start, order) = (format_ident!("{}", stage.start), format_ident!("{}", stage.order));
    let custom_key = stage.key.is_some();
    info(
        &stage.name,
        glue,
        quote! {
            application_id: #application_id,
            inputs: __INPUTS,
            parts: &__PARTS,
            start: #glue::Start::#start,
            order: #glue::Order::#order,
            custom_key: #custom_key,
            stub: false,
        },
        function,
    )
}

fn key(stage: &Stage, glue: &TokenStream) -> TokenStream {
    let body = match &stage.key {
        Some(path) => {
            let generics = shown_at(quote!(::<__Input, _>), ends(path).0);
            let compute = call_shown_as(path, quote!(#glue::key), generics, quote!((#path, &input)));
            quote! {
                let input = <Self as #glue::Stage>::decode(raw)?.input;
                #compute
            }
        }
        None => quote!(#glue::record_key(raw)),
    };
    quote! {
        fn key(raw: &#glue::RawRecord) -> ::core::result::Result<#glue::Bytes, #glue::Trouble> {
            #body
        }
    }
}

/// The call of the function. A future that is not `Send` is reported at the function's name.
fn call(stage: &Stage, name: &Ident, slots: &[Slot<'_>], glue: &TokenStream) -> TokenStream {
    let span = name.span();
    let fields = slots.iter().map(|slot| &slot.field);
    let returns = &stage.returns;
    let called = quote_spanned!(span=> #name(taken.input #(, &mut slots.#fields)*));
    let outcome = call_shown_as(returns, quote!(#glue::outcome), quote!(::<#returns>), quote!((returned)));
    let future = shown_at(
        quote!(#glue::Future<Output = ::core::result::Result<(), #glue::BoxError>> + #glue::Send),
        span,
    );
    quote_spanned! {span=>
        fn call(taken: __Taken, slots: &mut __Slots) -> impl #future {
            async move {
                let returned = #called.await;
                #outcome
            }
        }
    }
}
