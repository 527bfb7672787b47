/// Counts.
#[cfg(feature = "count")]
pub async fn count(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Counts>,
) -> Result {
    Ok(())
}
#[cfg(feature = "count")]
#[doc(hidden)]
#[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
pub struct count {}
#[cfg(feature = "count")]
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
    impl ::flechtwerk::glue::Listable for count {
        const LISTED: ::flechtwerk::glue::Listed = ::flechtwerk::glue::listed::<
            __Stage,
        >();
    }
    const _: () = {
        type __T0 = Words;
        type __Input = <Record<
            Words,
        > as ::flechtwerk::glue::CheckedBy<
            { ::flechtwerk::glue::input_type::<Record<Words>>() },
        >>::It;
        type count = <(
            __Input,
            (__T0, ()),
            (State<Count>, (Out<Counts>, ())),
            (),
            Result,
        ) as ::flechtwerk::glue::CheckedBy<
            {
                let inputs: [::flechtwerk::glue::InputCheck; 1usize] = [
                    ::flechtwerk::glue::input::<
                        <__Input as ::flechtwerk::glue::Same>::T,
                        <__T0 as ::flechtwerk::glue::With<__Input>>::It,
                        ::flechtwerk::glue::AnyKey,
                    >(),
                ];
                let slots: [&[::flechtwerk::glue::Part]; 2usize] = [
                    ::flechtwerk::glue::slot::<
                        State<Count>,
                    >(
                        &[
                            <<State<
                                Count,
                            > as ::flechtwerk::glue::SlotParam>::Role as ::flechtwerk::glue::FitsByMut>::PROOF,
                            <<State<
                                Count,
                            > as ::flechtwerk::glue::SlotParam>::Keeps as ::flechtwerk::glue::KeptAs<
                                Count,
                            >>::PROOF,
                        ],
                    ),
                    ::flechtwerk::glue::slot::<
                        Out<Counts>,
                    >(
                        &[
                            <<Out<
                                Counts,
                            > as ::flechtwerk::glue::SlotParam>::Role as ::flechtwerk::glue::FitsByMut>::PROOF,
                            <<Out<
                                Counts,
                            > as ::flechtwerk::glue::SlotParam>::Keeps as ::flechtwerk::glue::KeptAs<
                                Count,
                            >>::PROOF,
                        ],
                    ),
                ];
                let shared: [&[::flechtwerk::glue::Share]; 0usize] = [];
                ::flechtwerk::glue::inputs_complete("Record<Words>", &inputs);
                ::flechtwerk::glue::state_taken("Count", &slots);
                ::flechtwerk::glue::key_not_null(inputs[0usize].info);
                ::flechtwerk::glue::parameter(&slots, 0usize);
                ::flechtwerk::glue::timers_heard(&slots, 0usize);
                ::flechtwerk::glue::parameter(&slots, 1usize);
                ::flechtwerk::glue::timers_heard(&slots, 1usize);
                <Result as ::flechtwerk::glue::Outcome>::PROOF
            },
        >>::It;
        impl ::flechtwerk::glue::Stage for __Stage {
            const INFO: &'static ::flechtwerk::glue::StageInfo = &::flechtwerk::glue::StageInfo {
                name: "count",
                id: concat!(module_path!(), "::", "count"),
                application_id: ::core::option::Option::None,
                inputs: &[
                    <<Self::Topics as ::flechtwerk::glue::Pair>::First as ::flechtwerk::glue::Topic>::INFO,
                ],
                parts: ::flechtwerk::glue::AllParts::<Self::Slots, 12usize>::LIST,
                shared: &[],
                start: ::flechtwerk::glue::Start::Earliest,
                order: ::flechtwerk::glue::Order::Inputs,
                custom_key: false,
                headers: false,
                extractor: ::core::option::Option::None,
                policy: ::flechtwerk::glue::Policy::CRASH,
                stub: false,
            };
            type Input = <count as ::flechtwerk::glue::Checked>::Input;
            type Topics = <count as ::flechtwerk::glue::Checked>::Topics;
            type Slots = <count as ::flechtwerk::glue::Checked>::Slots;
            type Shared = <count as ::flechtwerk::glue::Checked>::Shared;
            fn call(
                input: Self::Input,
                slots: &mut Self::Slots,
                shared: &Self::Shared,
            ) -> impl ::flechtwerk::glue::Future<
                Output = <count as ::flechtwerk::glue::Checked>::Returns,
            > + ::flechtwerk::glue::Send {
                count(input, &mut slots.0, &mut slots.1.0)
            }
        }
    };
};
