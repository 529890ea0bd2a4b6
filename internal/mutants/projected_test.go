package mutants

const (
	heldSome     = "internal/object/projected.go"
	wireSome     = "internal/wire/projected.go"
	planFields   = "internal/wire/project/fields.go"
	choosesSome  = "kates/query_project.go"
	nothingElse  = "a field of structs holds what the struct has, and nothing else; each rule holds as for whole objects"
	projectsSame = "TestG4G5G7AProjectionIsWhatAStructHasOfTheWholeObject"
	formsOfSome  = "TestAWatchHoldsTheFieldsOfAStructWhereNothingElseIsWanted"
)

// projecting are mistakes in watches that hold some fields of their objects.
var projecting = []mutant{
	{
		name: "texts of one length are one", says: nothingElse, file: "internal/wire/project/compile.go", in: "internal/wire", caught: "TestAProjectionHasTheTextsOfItsIdentityOnce",
		old: `if text == string(v.bytes) {`,
		new: `if len(text) == len(v.bytes) {`,
	},
	{
		name: "labels are not held where a query selects by them", says: nothingElse, file: "kates/query_keep.go", in: "kates", caught: projectsSame,
		old: `selects = selects || s.LabelSelector != "" || s.Labels != nil`,
		new: `_ = s`,
	}, {
		name: "a union holds some fields", says: nothingElse, file: choosesSome, in: "kates", caught: projectsSame,
		old: `if t.AnyOf != nil { // a union`,
		new: `if false { // a union`,
	}, {
		name: "a function that takes another type is ignored", says: nothingElse, file: choosesSome, in: "kates", caught: formsOfSome,
		old: `bareType(f.takes) != elem && !t.isOurs(f.name) {`,
		new: `bareType(f.takes) != elem && t.isOurs(f.name) {`,
	}, {
		name: "a function of this package gets whole objects", says: nothingElse, file: choosesSome, in: "kates", caught: formsOfSome,
		old: `return isKeyOf(t.Key, keysOfOurs) || isKeyOf(t.Key, keysByIdentity)`,
		new: `return false`,
	}, {
		name: "a reference that reads another type is ignored", says: nothingElse, file: choosesSome, in: "kates",
		caught: "TestAFunctionThatReadsWhatAStructHasNotGetsTheWholeObject",
		old:    `if r.ref.Query == t.Name && bareType(r.takes) != elem {`,
		new:    `if r.ref.Query == "" {`,
	}, {
		name: "any transform counts as one that drops managedFields", says: nothingElse, file: choosesSome, in: "kates", caught: formsOfSome,
		old: `sameCode(t.Transform, DropManagedFields) && !project`,
		new: `!project`,
	}, {
		name: "a struct's managedFields are kept although they are to be dropped", says: nothingElse, file: choosesSome, in: "kates", caught: formsOfSome,
		old: `&& !project.Has(elem, "metadata", "managedFields")`,
		new: `&& (true || project.Has(elem))`,
	}, {
		name: "the fields of a struct are not compared with those of the kind", says: nothingElse, file: choosesSome, in: "kates",
		caught: "TestAFieldThatTheKindHasNotIsAnErrorOfWatch",
		old:    `err := wire.Projects(c.core.scheme, kind, p); err != nil {`,
		new:    `err := wire.Projects(c.core.scheme, kind, p); err != nil && false {`,
	}, {
		name: "an item of a list has no kind in the struct", says: nothingElse, file: wireSome, in: "kates",
		caught: "TestTheKindIsAmongTheFieldsOfAStructThatHasIt",
		old:    `if p.said && h.GroupVersionKind().Empty() {`,
		new:    `if false {`,
	}, {
		name: "an object that does not decode ends the list", says: nothingElse, file: wireSome, in: "kates",
		caught: "TestG8AProjectionThatDoesNotDecodeOnTheWireIsLeftOutByItselfAndHeals",
		old:    `	if err != nil || h.Metadata.Name == "" {`,
		new:    "	if err != nil {\n\t\treturn nil, false, err\n\t}\n\tif h.Metadata.Name == \"\" {",
	}, {
		name: "each version has a value of its own", says: nothingElse, file: heldSome, in: "kates", caught: "TestWhatAVersionLeavesAsItWasIsTheSamePointer",
		old: `		p.value = before.value
`,
		new: ``,
	}, {
		name: "a value that differs is taken from the version before", says: nothingElse, file: heldSome, in: "kates", caught: projectsSame,
		old: `shown != nil && SameValue(p.value, before.value) && reflect.DeepEqual(p.value, before.value)`,
		new: `shown != nil`,
	}, {
		name: "objects of two versions are the same", says: nothingElse, file: heldSome, in: "internal/object",
		caught: "TestProjectedObjectsAreTheSameIfAllThatIsHeldIs",
		old:    `		a.version == b.version && `,
		new:    `		`,
	}, {
		name: "another type is made of what is held", says: nothingElse, file: "snapshot/projected.go", caught: "TestAProjectedObjectIsNotConverted",
		old: `if value.Type() != reflect.PointerTo(f.base) {`,
		new: `if v := reflect.New(f.base); value.Type() != v.Type() {
		return f.element(v), nil
	} else if false {`,
	}, {
		name: "a name in another letter case is an error", says: nothingElse, file: planFields, caught: "TestAProjectionIsWhatJSONMakesOfTheObject",
		old: `	for _, f := range fields {
		if strings.EqualFold(f.name, name) {`,
		new: `	for _, f := range fields {
		if false {`,
	}, {
		name: "a query that is replaced forgets what refers to it", says: nothingElse, in: "kates",
		file: "accumulator/collect/changes.go", caught: "TestAFunctionThatReadsWhatAStructHasNotGetsTheWholeObject",
		old: `if i >= 0 && !ref.Reads(queries[i].Form) {`,
		new: `if i < 0 && !ref.Reads("") {`,
	}, {
		name: "annotations are not held where a function reads them", says: nothingElse, file: choosesSome, in: "kates",
		caught: "TestFunctionsOfThePackageGetTheFieldsThatTheyReadBesideThoseOfAStruct",
		old:    `			b.Annotations = true`,
		new:    `			b.Labels = true`,
	}, {
		name: "owners are not decoded", says: nothingElse, file: wireSome, in: "internal/wire",
		caught: "TestAProjectionIsOneWhateverTheEncodingAndForTheAnswerToAWriteToo",
		old:    `	if p.mores != nil {`,
		new:    `	if false {`,
	}, {
		name: "a field outside of the metadata is not held", says: nothingElse, file: choosesSome, in: "kates",
		caught: "TestFunctionsOfThePackageGetTheFieldsThatTheyReadBesideThoseOfAStruct",
		old:    `			return b, false`,
		new:    `			return b, true`,
	}, {
		name: "an embedded struct that is not exported is left out", says: nothingElse, file: planFields,
		caught: "TestAProjectionIsWhatJSONMakesOfTheObject",
		old:    ` || bare(f.Type).Kind() == reflect.Struct { // as`,
		new:    ` { // as`,
	}, {
		name: "what functions read of the metadata is not packed", says: nothingElse, file: "internal/wire/packing.go",
		caught: "TestAProjectionIsPackedAsItWas",
		old: `	in.Head.More = in.More
`,
		new: ``,
	}, {
		name: "another function beside a struct changes all objects", says: nothingElse, file: "accumulator/query/query.go", in: "kates",
		caught: "TestG7AnotherFunctionBesideAStructChangesNoObject",
		old:    `return some && others && pa.Into == pb.Into`,
		new:    `return some && others && pa == pb`,
	}, {
		name: "an empty list and none are one", says: nothingElse, file: heldSome, in: "kates", caught: "TestAListThatIsNoLongerThereIsNil",
		old: ` && reflect.DeepEqual(p.value, before.value) {`,
		new: ` {`,
	}, {
		name: "a transform is forgotten where Refs need whole objects", says: nothingElse, file: "accumulator/collect/changes.go", in: "kates",
		caught: "TestATransformOfWholeObjectsIsThereWhereRefsNeedThese",
		old:    `= stream.Whole, queries[i].WholeTransform`,
		new:    `= stream.Whole, queries[i].Transform`,
	}, {
		name: "another key reads what the former query held", says: nothingElse, file: "accumulator/partition/keys.go", in: "kates",
		caught: "TestAnotherKeyBesideAStructReadsWhatItNeeds",
		old:    `now := p.placedOf(i, q, o, old)`,
		new:    `now := p.placedOf(i, q, old.row.Source, old)`,
	}, {
		name: "an object that does not decode has no key", says: nothingElse, file: "accumulator/partition/keys.go", in: "kates",
		caught: "TestG8AnObjectThatDoesNotDecodeIsInvalidInThePartitionOfItsOwner",
		old:    `q.KeyOfMetadata && m != nil {`,
		new:    `q.KeyOfMetadata && m != nil && false {`,
	},
}
