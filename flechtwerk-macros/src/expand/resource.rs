//! `#[resource]`: an async function that makes something which stages share.
//!
//! As with a stage, the function itself is emitted first and as it was written, and beside it a struct of the same name,
//! which `pipeline!` finds under the function's path.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{FnArg, GenericArgument, Path, PathArguments, ReturnType, Type};

use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::item::{self, Function};
use crate::names;
use crate::spans::{call_shown_as, ends, shown_at, written};

const SPEC: &[(&str, Kind)] = &[("name", Kind::Text), ("close", Kind::Path)];

/// A resource without mistakes, as far as tokens can tell.
struct Resource {
    name: String,
    /// What the function makes.
    made: Type,
    returns: Type,
    settings: Option<Type>,
    /// The parameters, in order; `None` stands for the settings.
    parameters: Vec<Option<Type>>,
    close: Option<Path>,
}

pub(crate) fn resource(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(arguments, SPEC, "resource", &mut errors);
    let function = match item::function(&item, "resource") {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            let errors = errors.to_tokens();
            return quote!(#item #errors);
        }
    };
    let made = made(&function);
    let resource = read(&args, &function, made.clone(), &mut errors);
    let errors = errors.to_tokens();
    if function.signature.receiver().is_some() {
        return quote!(#item #errors);
    }
    let krate = &args.krate;
    let glue = quote!(#krate::glue);
    let name = &function.signature.ident;
    let text = name.unraw().to_string();
    let identity = made.map(|made| identity(&made, &text, &glue));
    let generated = match resource {
        Some(resource) => expand(&resource, &function, &glue),
        None => quote! {
            impl #glue::ListableResource for #name {
                const LISTED: #glue::ListedResource = #glue::ListedResource {
                    info: &#glue::ResourceInfo {
                        name: #text,
                        id: concat!(module_path!(), "::", #text),
                        needs: &[],
                        settings: false,
                        stub: true,
                    },
                    resource: &#glue::StubResource,
                };
            }
        },
    };
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
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated, refining_impl_trait)]
        const _: () = {
            #identity
            #generated
        };
    }
}

/// `R` of `Result<R>`.
fn made(function: &Function) -> Option<Type> {
    let ReturnType::Type(_, ty) = &function.signature.output else { return None };
    let Type::Path(path) = &**ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(made) => Some(made.clone()),
        _ => None,
    }
}

fn read(args: &Args, function: &Function, made: Option<Type>, errors: &mut Errors) -> Option<Resource> {
    let signature = &function.signature;
    check_kind(function, errors);
    if made.is_none() && signature.receiver().is_none() {
        let message =
            "a resource's function returns what it makes, or why it can't: `-> flechtwerk::Result<SomeType>`";
        match &signature.output {
            ReturnType::Type(_, ty) => errors.at(ty, message),
            ReturnType::Default => errors.at(&signature.ident, message),
        }
    }
    let name = match args.text("name") {
        Some(name) => {
            if let Some(fault) = fault(&name.value()) {
                errors.at(name, fault);
            }
            name.value()
        }
        None => signature.ident.unraw().to_string(),
    };
    let mut settings = None;
    let mut parameters = vec![];
    for parameter in &signature.inputs {
        let FnArg::Typed(parameter) = parameter else { continue };
        match &*parameter.ty {
            Type::Reference(reference) if reference.mutability.is_some() => errors.at(
                &parameter.ty,
                format!(
                    "resources are shared, so they are taken by `&`: write `&{}`",
                    written(&reference.elem)
                ),
            ),
            Type::Reference(reference) => parameters.push(Some((*reference.elem).clone())),
            ty if head_is(ty, "Res") => errors.at(
                ty,
                format!("other resources use it as well, so it is taken by `&`: write `&{}`", written(ty)),
            ),
            ty if settings.is_some() => errors
                .at(ty, "a resource has one type of settings, this is the second: put both into one struct"),
            ty => {
                settings = Some(ty.clone());
                parameters.push(None);
            }
        }
    }
    if !errors.is_empty() {
        return None;
    }
    let ReturnType::Type(_, returns) = &signature.output else { return None };
    Some(Resource {
        name,
        made: made?,
        returns: (**returns).clone(),
        settings,
        parameters,
        close: args.path("close").cloned(),
    })
}

fn head_is(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == name))
}

/// A name becomes a table's in the settings file, and a part of environment variables.
fn fault(name: &str) -> Option<String> {
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_')) {
        return Some(format!(
            "{c:?} can't be in a resource's name, after which its settings are named: it has a-z, 0-9 and `_`"
        ));
    }
    names::fault("a resource's name", name, names::LONGEST)
}

/// The function is async, free, not generic.
fn check_kind(function: &Function, errors: &mut Errors) {
    let signature = &function.signature;
    if let Some(receiver) = signature.receiver() {
        errors.at(receiver, "a resource is made by a free function: move it out of the `impl`");
    }
    if signature.asyncness.is_none() {
        let message = format!(
            "a resource's function is `async`, since most have to connect: write `async fn {}`",
            signature.ident
        );
        errors.at(signature.fn_token, message);
    }
    if let Some(unsafety) = &signature.unsafety {
        errors.at(unsafety, "a resource's function can't be `unsafe`: the pipeline calls it by itself");
    }
    if let Some(generic) = signature.generics.params.first() {
        errors.at(
            generic,
            "a resource's function can't be generic, since the pipeline calls it as it stands: write the type out",
        );
    }
}

/// By this a `Res<R>` anywhere is known to be the function's.
fn identity(made: &Type, function: &str, glue: &TokenStream) -> TokenStream {
    let type_name = written(made);
    quote! {
        impl #glue::Resource for #made {
            const NEED: #glue::Need = #glue::Need {
                id: concat!(module_path!(), "::", #function),
                type_name: #type_name,
            };
        }
    }
}

fn expand(resource: &Resource, function: &Function, glue: &TokenStream) -> TokenStream {
    let ident = &function.signature.ident;
    let Resource { name, made, returns, settings, parameters, close } = resource;
    let text = ident.unraw().to_string();
    let has_settings = settings.is_some();
    // What does not fit is an error of one of these constants, once; what follows depends on their values.
    let settings_alias = settings.as_ref().map(|ty| {
        let proof = call_shown_as(ty, quote!(#glue::settings_type), quote!(::<#ty>), quote!(()));
        quote!(type __Settings = <#ty as #glue::CheckedBy<{ #proof }>>::It;)
    });
    let (mut need_aliases, mut needs, mut arguments, mut bindings) = (vec![], vec![], vec![], vec![]);
    for (n, parameter) in parameters.iter().enumerate() {
        let local = format_ident!("__a{n}");
        match parameter {
            None => {
                bindings.push(quote!(let #local = #glue::settings::<__Settings>(given)?;));
                arguments.push(quote!(#local));
            }
            Some(ty) => {
                let alias = format_ident!("__N{n}");
                let proof = call_shown_as(ty, quote!(#glue::need_type), quote!(::<#ty>), quote!(()));
                need_aliases.push(quote!(type #alias = <#ty as #glue::CheckedBy<{ #proof }>>::It;));
                needs.push(quote!(<#alias as #glue::NeedParam>::NEED));
                bindings.push(quote!(let #local = #glue::need::<#alias>(given)?;));
                arguments.push(quote!(&#local));
            }
        }
    }
    let fits = settings.is_some().then(|| quote!(#glue::settings::<__Settings>(given)?;));
    let close = match close {
        Some(path) => {
            let call = shown_at(quote!((&**resource).await), ends(path).1);
            quote!(#glue::closed(#path #call))
        }
        None => quote!(#glue::Ok(())),
    };
    let made_call = call_shown_as(returns, quote!(#glue::made), quote!(::<#made, _>), quote!((returned)));
    let span = ident.span();
    let future =
        |output: TokenStream| shown_at(quote!(impl #glue::Future<Output = #output> + #glue::Send), span);
    let made_future = future(quote!(::core::result::Result<Self::It, #glue::Unmade>));
    let closed_future = future(quote!(#glue::Result));
    quote! {
        struct __Resource;
        impl #glue::ListableResource for #ident {
            const LISTED: #glue::ListedResource = #glue::listed_resource::<__Resource>();
        }
        const _: () = {
            #settings_alias
            #(#need_aliases)*
            impl #glue::Makes for __Resource {
                const INFO: &'static #glue::ResourceInfo = &#glue::ResourceInfo {
                    name: #name,
                    id: concat!(module_path!(), "::", #text),
                    needs: &[#(#needs),*],
                    settings: #has_settings,
                    stub: false,
                };
                type It = #made;
                fn fits(given: &#glue::Given<'_>) -> ::core::result::Result<(), #glue::Unmade> {
                    #fits
                    #glue::Ok(())
                }
                fn making(given: &#glue::Given<'_>) -> #made_future {
                    async move {
                        #(#bindings)*
                        let returned = #ident(#(#arguments),*).await;
                        #made_call
                    }
                }
                fn closing(resource: &#glue::Res<Self::It>) -> #closed_future {
                    async move { #close }
                }
            }
        };
    }
}
