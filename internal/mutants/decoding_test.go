package mutants

const (
	asJSON     = "internal/asjson/asjson.go"
	lengths    = "internal/wire/frames/proto.go"
	readEvents = "internal/wire/frames/watch.go"
	identified = "internal/wire/frames/identity.go"
	asItIs     = "what comes from outside is decoded as its JSON is, or is an error"
)

// decoders are mistakes in reading bytes that come from outside. Fuzzers have found most of them.
var decoders = []mutant{
	{
		name: "a number is cut to the bits of its field", says: asItIs, file: asJSON, caught: "TestANumberThatDoesNotFitItsFieldIsAnErrorAndIsNotCut",
		old: `return b.least <= v && v <= b.most`,
		new: `return true`,
	}, {
		name: "a number with a fraction beyond its field is cut", says: asItIs, file: asJSON, caught: "TestANumberThatDoesNotFitItsFieldIsAnErrorAndIsNotCut",
		old: `return math.Abs(v) < 1<<53 && b.least <= int64(v) && int64(v) <= b.most`,
		new: `return true`,
	}, {
		name: "a field that is not in JSON is read", says: asItIs, file: asJSON, caught: "TestAFieldThatJSONLeavesOutStaysEmpty",
		old: `hidden {`,
		new: `hidden && false {`,
	}, {
		name: "what is decoded over a value keeps some of it", says: asItIs, file: asJSON, caught: "TestWhatWasThereBeforeIsGone",
		old: `v.SetZero()`,
		new: ``,
	}, {
		name: "items of a wrong wire type are no items", says: asItIs, file: lengths, caught: "TestG8AListWhoseItemsHaveAWrongWireTypeIsNotEmpty",
		old: `case number <= known && kind != protowire.BytesType:`,
		new: `case false:`,
	}, {
		name: "an event of a wrong wire type has no content", says: asItIs, file: lengths, caught: "TestWhatIsNoEventIsAnErrorThatSaysSo",
		old: `if number <= known && kind`,
		new: `if false && kind`,
	}, {
		name: "a field of protobuf may be there twice", says: asItIs, file: lengths, caught: "TestAMemberThatIsThereTwiceIsAnError",
		old: `if seen[number] {`,
		new: `if false {`,
	}, {
		name: "an event has its type twice, and the first is null", says: asItIs, file: readEvents, caught: "TestAMemberThatIsThereTwiceIsAnError",
		old: `typed = true`,
		new: `typed = e.Type != ""`,
	}, {
		name: "what nobody reads of an event is not checked", says: asItIs, file: readEvents, caught: "TestWhatIsNoEventIsAnErrorThatSaysSo",
		old: `case !json.Valid(value):`,
		new: `case value == nil:`,
	}, {
		name: "what nobody reads of a list is not checked", says: asItIs, file: framed, in: "internal/wire/frames", caught: "TestWhatIsNoListIsAnErrorThatSaysSo",
		old: `case !json.Valid(raw):`,
		new: `case raw == nil:`,
	}, {
		name: "a backslash makes a part of a text of the line's end", says: asItIs, file: framedJSON, caught: "TestG5AnEventThatWasGarbledDoesNotSwallowTheNextOne",
		old: `case c < ' ': // no server`,
		new: `case c < ' ' && !escaped: // no server`,
	}, {
		name: "the metadata of a list has its fields in any case", says: asItIs, file: framed, in: "internal/wire/frames", caught: "TestAFieldOfAListIsWrittenAsItIsCalled",
		old: `	if err := utiljson.Unmarshal(raw, into); err != nil {`,
		new: `	_ = utiljson.Unmarshal
	if err := json.Unmarshal(raw, into); err != nil {`,
	}, {
		name: "the last name of an object counts", says: asItIs, file: identified, caught: "TestTheIdentityOfABrokenObjectIsReadAsFarAsItGoes",
		old: `return n < 2`,
		new: `return true`,
	}, {
		name: "the last name of an object in protobuf counts", says: asItIs, file: identified, caught: "TestTheIdentityOfABrokenObjectIsReadAsFarAsItGoes",
		old: `if n > 1 {`,
		new: `if false {`,
	}, {
		name: "a Secret of Argo CD without labels ends the program", says: asItIs, file: "fleet/source/argo.go", caught: "TestASecretOfArgoCDWithoutLabelsIsACluster",
		old: `if m.Labels == nil {`,
		new: `if false {`,
	},
	{
		name: "garbage in a text is waited out", says: asItIs, file: framedJSON, caught: "TestG5GarbageInAnEventIsFoundBeforeItEnds",
		old: `case c < ' ': // no server`, new: `case c == '\n': // no server`,
	},
}
