package mutants

const (
	treeScan  = "internal/wire/tree/scan.go"
	treeBuild = "internal/wire/tree/build.go"
	treeTable = "internal/wire/tree/table.go"
	treeShare = "internal/wire/tree/share.go"
	sameTree  = "an untyped object is what its JSON says, whatever else has been decoded"
	ownTree   = "who may write to an object shares no maps and slices with others"
	littleOf  = "what no object has any more is bounded"
)

// trees are mistakes in decoding untyped objects that share memory.
var trees = []mutant{
	{
		name: "parts are told apart by a hash alone", says: sameTree, file: treeTable, caught: "TestTextsOfOneHashAreToldApart",
		old: `e.hash == hash && e.text == string(text)`,
		new: `e.hash == hash && len(e.text) > 0`,
	}, {
		name: "a key is twice in an untyped object", says: sameTree, file: treeBuild, caught: "FuzzADecodedObjectIsTheSame",
		old: `if len(m) != int(n) {`,
		new: `if false {`,
	}, {
		name: "what is escaped in a text stays so", says: sameTree, file: treeBuild, caught: "FuzzADecodedObjectIsTheSame",
		old: `if bytes.IndexByte(quoted, '\\') < 0 {`,
		new: `if bytes.IndexByte(quoted, '\\') < len(quoted) {`,
	}, {
		name: "an escape of an untyped object is not looked at", says: sameTree, file: treeScan, caught: "FuzzADecodedObjectIsTheSame",
		old: `case c == '\\' && !s.escape():`,
		new: `case c == '\\' && s.at < 0:`,
	}, {
		name: "a text that goes on behind its object is taken", says: sameTree, file: treeScan, caught: "FuzzADecodedObjectIsTheSame",
		old: `return s.at == len(raw)`,
		new: `return s.at <= len(raw)`,
	}, {
		name: "a large integer is no integer", says: sameTree, file: treeBuild, caught: "FuzzADecodedObjectIsTheSame",
		old: `strconv.ParseInt(text, 10, 64)`,
		new: `strconv.ParseInt(text, 10, 32)`,
	}, {
		name: "maps are shared with who may write to them", says: ownTree, file: treeBuild, caught: "TestWhoMayWriteHasMapsAndSlicesOfItsOwn",
		old: `if !b.share {`,
		new: `if false {`,
	}, {
		name: "two objects are one map", says: ownTree, file: treeBuild, caught: "TestEqualPartsOfObjectsAreTheSameFromTheThirdOn",
		old: `m := b.object(0)`,
		new: `m, _ := b.value(0).(map[string]any)`,
	}, {
		name: "a transform writes to what objects share", says: ownTree, file: "accumulator/stream/sharing.go", in: "kates", caught: "TestATransformWritesToItsOwnObjectAlone",
		old: `ok && s.transform == nil {`,
		new: `ok {`,
	}, {
		name: "what was transformed is shared by writing to it", says: ownTree, file: treeShare, caught: "TestObjectsThatWereTransformedShareEqualPartsFromTheThirdOn",
		old: `fresh, other = maps.Clone(m), true`,
		new: `fresh, other = m, maps.Clone(m) != nil`,
	}, {
		name: "values of two types are one", says: sameTree, file: treeShare, caught: "TestAnObjectThatSharesPartsIsTheSameAndNothingIsWrittenTo",
		old: `append(s.text, isInteger), uint64(v))`,
		new: `append(s.text, isNumber), math.Float64bits(float64(v)))`,
	}, {
		name: "what cannot be told apart is shared", says: sameTree, file: treeShare, caught: "TestAnObjectThatSharesPartsIsTheSameAndNothingIsWrittenTo",
		old: `if !known || len(text) > longest {`,
		new: `if len(text) > longest {`,
	}, {
		name: "answers to own writes share nothing", says: "equal parts of untyped objects are in memory once", file: "accumulator/stream/write.go", in: "kates", caught: "TestG4AnswersToOwnWritesShareEqualParts",
		old: `st.sharing(st.prepare(st.private(object)))`,
		new: `st.prepare(st.private(object))`,
	}, {
		name: "what is seen once is held", says: littleOf, file: treeTable, caught: "TestWhatIsInOneObjectAloneIsNotHeld",
		old: `if note.Load() != mark {`,
		new: `if false {`,
	}, {
		name: "the texts of a table have no bound", says: littleOf, file: treeTable, caught: "TestATableIsBoundedWhateverComes",
		old: `if p.text.Load() <= mostText {`,
		new: `if p != nil {`,
	}, {
		name: "a table grows without end", says: littleOf, file: treeTable, caught: "TestATableIsBoundedWhateverComes",
		old: `&& len(p.all) < most {`,
		new: `{`,
	}, {
		name: "what is in use gives way to what is new", says: "a part that many objects share stays known", file: treeTable, caught: "TestWhatIsAskedForKeepsItsPlace",
		old: `if !e.asked.Load() {`,
		new: `if false {`,
	},
}
