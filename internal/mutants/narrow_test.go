package mutants

const (
	narrow = "accumulator/stream/narrow.go"
	part   = "a query for a part of what a watch has may be served from it, and shows no other object"
)

// narrowing are mistakes where one watch serves queries for a part of it.
var narrowing = []mutant{
	{
		name: "a part has the objects of other namespaces", says: part, file: narrow, caught: "TestANamespaceIsServedByAWatchOfAll",
		old: `n.as.namespace != "" && o.GetNamespace() != n.as.namespace`,
		new: `false`,
	}, {
		name: "what is not in a part signals it", says: part, file: subscription, caught: "TestAQueryForAPartIsServedByAWatchOfAll",
		old: `before, after = l.narrow.sees(key, before), l.narrow.sees(key, after)
	if before == after {`,
		new: `if l.narrow.sees(key, before); false {`,
	}, {
		name: "another's change signals a part after an own write has failed", says: part, file: "accumulator/stream/own.go", caught: "TestQuietOwnWritesOfOtherObjectsDoNotSignalAPart",
		old: `(before != nil || after != nil) && `,
		new: ``,
	}, {
		name: "a first batch of a part has everything", says: part, file: narrow, caught: "TestAQueryForAPartIsServedByAWatchOfAll",
		old: `	all := l.stream.store.everything()
	if l.narrow == nil {`,
		new: `	all := l.stream.store.everything()
	if true {`,
	}, {
		name: "a field that only the server knows is judged here", says: part, file: narrow, caught: "TestAQueryHasAWatchOfItsOwnWhereNoOtherIsSure/a_field_that_only_the_server_can_judge",
		old: `if !ofMetadata(r) {`,
		new: `if false && !ofMetadata(r) {`,
	}, {
		name: "a watch in trouble serves parts", says: part, file: narrow, caught: "TestAQueryHasAWatchOfItsOwnWhereNoOtherIsSure/a_watch_in_trouble",
		old: ` && s.health.state == Synced`,
		new: ``,
	}, {
		name: "a union is served from a wider watch", says: part, file: narrow, caught: "TestAQueryHasAWatchOfItsOwnWhereNoOtherIsSure/a_union",
		old: ` || o.Union != nil`,
		new: ``,
	}, {
		name: "two parts of one watch count as one", says: part, file: subscription, caught: "TestNamespacesOfAQueryAreServedByAWatchOfAll",
		old: `return ID{l.stream, l.narrow.as}`,
		new: `return ID{stream: l.stream}`,
	}, {
		name: "the metadata of one version is made again", says: "what did not change is the same pointer", file: narrow, caught: "TestMetadataIsServedByAWatchOfWholeObjects",
		old: `last := n.short[key]`,
		new: `last := shortened{}`,
	}, {
		name: "what does not decode is invalid in every part", says: part, file: narrow, caught: "TestAnObjectThatDoesNotDecodeIsInvalidWhereItIsSelected",
		old: `whole := o.(*rejected).metadata; whole != nil`,
		new: `whole := o.(*rejected).metadata; false`,
	},
}
