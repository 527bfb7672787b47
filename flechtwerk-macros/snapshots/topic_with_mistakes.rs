pub struct Words;
::core::compile_error! {
    "' ' can't be in a topic's name: Kafka allows letters, digits, `.`, `_` and `-`"
}
const _: () = {
    type __Codecs = <(
        Utf8,
        (),
    ) as ::flechtwerk::glue::CheckedBy<
        {
            ::core::compile_error! {
                "`vale` is not an argument of `topic`; did you mean `value`?"
            }
        },
    >>::It;
    impl ::flechtwerk::glue::Topic for Words {
        type KeyCodec = <__Codecs as ::flechtwerk::glue::Pair>::First;
        type ValueCodec = <__Codecs as ::flechtwerk::glue::Pair>::Second;
        const INFO: &'static ::flechtwerk::glue::TopicInfo = &::flechtwerk::glue::TopicInfo {
            name: "wor ds",
            id: concat!(module_path!(), "::", "Words"),
            key_codec: "Utf8",
            value_codec: "()",
            key_nullable: <Self::KeyCodec as ::flechtwerk::glue::Codec>::NULLABLE,
            schemas: [
                <Self::KeyCodec as ::flechtwerk::glue::Codec>::SCHEMA,
                <Self::ValueCodec as ::flechtwerk::glue::Codec>::SCHEMA,
            ],
        };
        type Row = <<Self as ::flechtwerk::glue::Topic>::ValueCodec as ::flechtwerk::glue::Codec>::Item;
        fn row(
            key: &<<Self as ::flechtwerk::glue::Topic>::KeyCodec as ::flechtwerk::glue::Codec>::Item,
            value: <<Self as ::flechtwerk::glue::Topic>::ValueCodec as ::flechtwerk::glue::Codec>::Item,
        ) -> ::flechtwerk::glue::Result<Self::Row> {
            ::flechtwerk::glue::Ok(value)
        }
    }
};
