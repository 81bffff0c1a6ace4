//! [`macro@boxed`]: an async function whose body is compiled once, in its own crate.
//!
//! The compiler builds the state machine of an `async fn` again in every crate that awaits it, with all functions that
//! it awaits. A boxed future is compiled where it is written; its callers see a pointer. That costs one allocation per
//! call, so it is meant for use cases at a crate's boundary, not for inner loops.

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Error, FnArg, GenericParam, Ident, ItemFn, Lifetime, ReturnType, Type, parse_quote};

/// Why a generic function is refused.
const GENERIC: &str = "a generic function is compiled by its callers; box a function with a `dyn` argument instead";

/// Makes `pub async fn f(a: &A) -> B` a `pub fn f<'boxed>(a: &'boxed A) -> Pin<Box<dyn Future<Output = B> + Send +
/// 'boxed>>`. For free functions without type parameters whose future is `Send`. Each elided lifetime of the arguments becomes `'boxed`.
#[proc_macro_attribute]
pub fn boxed(_: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse_macro_input!(item as ItemFn);
    expand(function).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(function: ItemFn) -> Result<Tokens, Error> {
    let ItemFn { attrs, vis, sig: inner, block, .. } = function;
    if inner.asyncness.is_none() {
        return Err(Error::new_spanned(inner.fn_token, "only an async function can be boxed"));
    }
    let mut outer = inner.clone();
    outer.asyncness = None;
    let mut elided = Elided::default();
    let mut names = Vec::new();
    for (index, input) in outer.inputs.iter_mut().enumerate() {
        let FnArg::Typed(argument) = input else {
            return Err(Error::new_spanned(input, "a method cannot be boxed; make it a function"));
        };
        // Patterns are taken apart by the inner function.
        let name = Ident::new(&format!("argument{index}"), Span::mixed_site());
        argument.pat = parse_quote!(#name);
        elided.visit_type_mut(&mut argument.ty);
        names.push(name);
    }
    let output: Type = match &mut outer.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, output) => {
            elided.visit_type_mut(output);
            (**output).clone()
        }
    };
    let boxed = lifetime();
    for parameter in &mut outer.generics.params {
        match parameter {
            GenericParam::Lifetime(parameter) => parameter.bounds.push(boxed.clone()),
            other => return Err(Error::new_spanned(other, GENERIC)),
        }
    }
    if let Some(argument) = elided.generic {
        return Err(Error::new_spanned(argument, GENERIC));
    }
    outer.generics.params.insert(0, parse_quote!(#boxed));
    outer.output = parse_quote!(-> ::std::pin::Pin<
        ::std::boxed::Box<dyn ::std::future::Future<Output = #output> + ::std::marker::Send + #boxed>
    >);
    let name = &inner.ident;
    Ok(quote! {
        #(#attrs)*
        #vis #outer {
            #inner #block
            ::std::boxed::Box::pin(#name(#(#names),*))
        }
    })
}

fn lifetime() -> Lifetime {
    Lifetime::new("'boxed", Span::mixed_site())
}

/// Names elided lifetimes, except those of function types, which have their own.
#[derive(Default)]
struct Elided {
    /// An argument whose type the caller chooses.
    generic: Option<syn::TypeImplTrait>,
}

impl VisitMut for Elided {
    fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
        reference.lifetime.get_or_insert_with(lifetime);
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, found: &mut Lifetime) {
        if found.ident == "_" {
            *found = lifetime();
        }
    }

    fn visit_type_impl_trait_mut(&mut self, argument: &mut syn::TypeImplTrait) {
        self.generic = Some(argument.clone());
    }

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut syn::ParenthesizedGenericArguments) {}
}
