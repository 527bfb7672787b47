async fn r#match(text: Text) -> fw::Result {
    Ok(())
}
#[doc(hidden)]
#[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
struct r#match {}
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    deprecated,
    non_camel_case_types,
    refining_impl_trait
)]
const _: () = {
    struct __Stage;
    impl fw::glue::Listable for r#match {
        const LISTED: fw::glue::Listed = fw::glue::listed::<__Stage>();
    }
    const _: () = {
        type __T0 = Words;
        type __T1 = Lines;
        type __Input = <Text as fw::glue::CheckedBy<
            { fw::glue::input_type::<Text>() },
        >>::It;
        type __Given = Dead;
        type __DeadLetters = <__Given as fw::glue::CheckedBy<
            { fw::glue::dead_letters::<<__Given as fw::glue::Same>::T>() },
        >>::It;
        type r#match = <(
            __Input,
            (__T0, (__T1, ())),
            (),
            (),
            fw::Result,
        ) as fw::glue::CheckedBy<
            {
                let inputs: [fw::glue::InputCheck; 2usize] = [
                    fw::glue::input::<
                        <__Input as fw::glue::Same>::T,
                        <__T0 as fw::glue::With<__Input>>::It,
                        fw::glue::AnyKey,
                    >(),
                    fw::glue::input::<
                        <__Input as fw::glue::Same>::T,
                        <__T1 as fw::glue::With<__Input>>::It,
                        fw::glue::AnyKey,
                    >(),
                ];
                let slots: [&[fw::glue::Part]; 0usize] = [];
                let shared: [&[fw::glue::Share]; 0usize] = [];
                fw::glue::inputs_complete("Text", &inputs);
                fw::glue::input_once(&inputs, 1usize);
                fw::glue::dead_letters_apart(
                    <__DeadLetters as fw::glue::Topic>::INFO,
                    &inputs,
                    &slots,
                );
                <fw::Result as fw::glue::Outcome>::PROOF
            },
        >>::It;
        impl fw::glue::Stage for __Stage {
            const INFO: &'static fw::glue::StageInfo = &fw::glue::StageInfo {
                name: "copy",
                id: concat!(module_path!(), "::", "match"),
                application_id: ::core::option::Option::Some("app"),
                inputs: &[
                    <<Self::Topics as fw::glue::Pair>::First as fw::glue::Topic>::INFO,
                    <<<Self::Topics as fw::glue::Pair>::Second as fw::glue::Pair>::First as fw::glue::Topic>::INFO,
                ],
                parts: fw::glue::AllParts::<Self::Slots, 0usize>::LIST,
                shared: &[],
                start: fw::glue::Start::Latest,
                order: fw::glue::Order::Timestamp,
                custom_key: true,
                headers: true,
                extractor: ::core::option::Option::None,
                policy: fw::glue::Policy {
                    named: true,
                    dead_letters: ::core::option::Option::Some(
                        <__DeadLetters as fw::glue::Topic>::INFO,
                    ),
                },
                stub: false,
            };
            type Input = <r#match as fw::glue::Checked>::Input;
            type Topics = <r#match as fw::glue::Checked>::Topics;
            type Slots = <r#match as fw::glue::Checked>::Slots;
            type Shared = <r#match as fw::glue::Checked>::Shared;
            fn key(raw: &fw::glue::RawRecord) -> fw::glue::Tried<fw::glue::Bytes> {
                let input = <Self as fw::glue::Stage>::decode(raw)?;
                fw::glue::key::<
                    <Self as fw::glue::Stage>::Input,
                    _,
                >(keys::by_value, &input)
            }
            fn on_invalid(record: &fw::glue::Invalid<'_>) -> fw::glue::Answer {
                fw::glue::on_invalid::<fw::glue::WithDeadLetters, _>(decide, record)
            }
            fn call(
                input: Self::Input,
                slots: &mut Self::Slots,
                shared: &Self::Shared,
            ) -> impl fw::glue::Future<
                Output = <r#match as fw::glue::Checked>::Returns,
            > + fw::glue::Send {
                r#match(input)
            }
        }
    };
};
