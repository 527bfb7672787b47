//! `#[derive(Input)]`: an enum with one variant for each topic that a stage reads.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Fields, Path};

use super::derive_args;
use crate::errors::Errors;
use crate::item::cfgs;
use crate::spans::{call_shown_as, written};

pub(crate) fn input(item: TokenStream) -> TokenStream {
    let declared: DeriveInput = match syn::parse2(item) {
        Ok(declared) => declared,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let args = derive_args(&declared.attrs, "input", &[], &mut errors);
    let krate = &args.krate;
    let ident = &declared.ident;
    if let Some(parameter) = declared.generics.params.first() {
        errors.at(parameter, "an input can't be generic, since the pipeline must know which topics it takes");
    }
    let arms = match &declared.data {
        Data::Enum(declared) => variants(ident, declared, krate, &mut errors),
        Data::Struct(declared) => {
            errors.at(
                declared.struct_token,
                "`#[derive(Input)]` goes on an enum with one variant for each topic; a stage with one input takes `Record<Topic>` itself",
            );
            vec![]
        }
        Data::Union(declared) => {
            errors.at(
                declared.union_token,
                "`#[derive(Input)]` goes on an enum with one variant for each topic",
            );
            vec![]
        }
    };
    let (of, types, clause) = declared.generics.split_for_impl();
    if !errors.is_empty() {
        // A stand-in that takes every topic, so that the stages which use it are no errors as well.
        let errors = errors.to_tokens();
        let mut all = declared.generics.clone();
        all.params.push(syn::parse_quote!(__R));
        let (of_all, _, _) = all.split_for_impl();
        return quote! {
            #errors
            const _: () = {
                impl #of_all #krate::glue::Accepts<__R> for #ident #types #clause {
                    fn accept(_: &#krate::glue::RawRecord) -> #krate::glue::Tried<Self> {
                        #krate::glue::no_input()
                    }
                }
                impl #of #krate::glue::Input for #ident #types #clause {
                    const TOPICS: &'static [&'static #krate::glue::TopicInfo] = &[];
                }
            };
        };
    }
    let accepts = arms.iter().map(|arm| &arm.accept);
    let topics = arms.iter().map(|arm| &arm.topic);
    let proofs = arms.iter().map(|arm| &arm.proof);
    quote! {
        const _: () = {
            #(#accepts)*
            impl #krate::glue::Input for #ident {
                const TOPICS: &'static [&'static #krate::glue::TopicInfo] = &[#(#topics),*];
                const PROOF: usize = #krate::glue::proofs(&[#(#proofs),*]);
            }
        };
    }
}

/// What was generated for a variant.
struct Variant {
    /// How it is made of a record.
    accept: TokenStream,
    topic: TokenStream,
    /// The constant that is an error if the variant holds no record.
    proof: TokenStream,
}

/// One for each variant without a mistake.
fn variants(ident: &syn::Ident, declared: &DataEnum, krate: &Path, errors: &mut Errors) -> Vec<Variant> {
    if declared.variants.is_empty() {
        errors.at(ident, "an input has one variant for each topic: `Order(Record<Orders>)`");
    }
    let mut arms = vec![];
    let mut seen: Vec<&syn::Type> = vec![];
    for variant in &declared.variants {
        let name = &variant.ident;
        let ty = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => &fields.unnamed[0].ty,
            _ => {
                errors.at(
                    variant,
                    format!(
                        "a variant of an input holds one record and nothing else: `{name}(Record<Topic>)`"
                    ),
                );
                continue;
            }
        };
        if seen.contains(&ty) {
            errors.at(
                ty,
                format!(
                    "two variants hold a `{}`, so nobody could tell which one a record is: keep one",
                    written(ty)
                ),
            );
            continue;
        }
        seen.push(ty);
        let cfgs = cfgs(&variant.attrs);
        // Named at the enum's name: what rustc suggests about an unknown type in the enum it then suggests about these
        // as well, takes all for one error, and shows it once.
        let n = arms.len();
        let checked = format_ident!("__checked{n}", span = ident.span());
        let record = format_ident!("__R{n}", span = ident.span());
        // What rustc compares to tell implementations apart must not be a projection.
        let given = format_ident!("__G{n}", span = ident.span());
        let proof = format_ident!("__PROOF{n}");
        let check = call_shown_as(ty, quote!(#krate::glue::variant), quote!(::<#ty>), quote!(()));
        let accept = quote_spanned! {ty.span()=>
            #(#cfgs)*
            const fn #checked() -> usize {
                #check
            }
            #(#cfgs)*
            const #proof: usize = #checked();
            #(#cfgs)*
            type #record = <#ty as #krate::glue::CheckedBy<#proof>>::It;
            #(#cfgs)*
            type #given = #ty;
            #(#cfgs)*
            impl #krate::glue::Accepts<#given> for #ident {
                fn accept(raw: &#krate::glue::RawRecord) -> #krate::glue::Tried<Self> {
                    <#record as #krate::glue::IsRecord>::accept(raw).map(#ident::#name)
                }
            }
        };
        arms.push(Variant {
            accept,
            topic: quote!(#(#cfgs)* <#record as #krate::glue::IsRecord>::INFO),
            proof: quote!(#(#cfgs)* #proof),
        });
    }
    arms
}
