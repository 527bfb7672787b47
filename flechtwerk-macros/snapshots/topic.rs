pub struct Words;
const _: () = {
    type __Codecs = <(
        Utf8,
        Json<u64>,
    ) as ::flechtwerk::glue::CheckedBy<
        { ::flechtwerk::glue::codecs::<Utf8, Json<u64>>() },
    >>::It;
    impl ::flechtwerk::glue::Topic for Words {
        type KeyCodec = <__Codecs as ::flechtwerk::glue::Pair>::First;
        type ValueCodec = <__Codecs as ::flechtwerk::glue::Pair>::Second;
        const INFO: &'static ::flechtwerk::glue::TopicInfo = &::flechtwerk::glue::TopicInfo {
            name: "words",
            id: concat!(module_path!(), "::", "Words"),
            key_codec: "Utf8",
            value_codec: "Json<u64>",
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
