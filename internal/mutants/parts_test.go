package mutants

const (
	partsDecoded = "internal/wire/parts/decode.go"
	partsTable   = "internal/wire/parts/table.go"
	equalParts   = "a part is shared only if all of its bytes are equal"
	readOnly     = "an object that shares parts is for readers alone"
	asGenerated  = "what the generated decoder of the type makes of the same bytes"
)

// sharedParts are mistakes in sharing what objects have in common.
var sharedParts = []mutant{
	{
		name: "parts with the same hash are shared", says: equalParts, file: partsTable, caught: "TestPartsAreSharedByTheirFieldAndBytesAndNotByTheirHash",
		old: `p.field == f && string(p.raw) == string(raw)`,
		new: `p.field == f`,
	}, {
		name: "equal bytes of two fields are shared", says: equalParts, file: partsTable, caught: "TestPartsAreSharedByTheirFieldAndBytesAndNotByTheirHash",
		old: `p.field == f && string(p.raw) == string(raw)`,
		new: `string(p.raw) == string(raw)`,
	}, {
		name: "a part is known by bytes that others overwrite", says: equalParts, file: partsTable, caught: "TestPodsOfOneTemplateHaveItOnce",
		old: `p.raw = slices.Clone(p.raw)`,
		new: ``,
	}, {
		name: "a part that comes once is remembered", says: "remembers parts that have come twice", file: partsTable, caught: "TestAPartIsRememberedWhenItComesForTheSecondTime",
		old: `if pair[0].once != h && pair[1].once != h {`,
		new: `if false {`,
	}, {
		name: "a table remembers any number of bytes", says: "a bound in bytes", file: partsTable, caught: "TestATableHoldsNoMoreThanItsBoundWhateverComes",
		old: `if held > mostHeld {`,
		new: `if false {`,
	}, {
		name: "the second piece of a message counts alone", says: asGenerated, file: partsDecoded, caught: "TestWhatNoServerWritesIsDecodedAsItsOwnDecoderDoesOrNotAtAll",
		old: `return false // in two pieces`,
		new: `w.seen[0] = 0`,
	}, {
		name: "a tag is cut to 32 bits by one of two decoders", says: asGenerated, file: partsDecoded, caught: "TestWhatNoServerWritesIsDecodedAsItsOwnDecoderDoesOrNotAtAll",
		old: `number == 0 || number > uint64(protowire.MaxValidNumber)`,
		new: `number == 0`,
	}, {
		name: "the rest of a label is not read", says: asGenerated, file: partsDecoded, caught: "TestWhatNoServerWritesIsDecodedAsItsOwnDecoderDoesOrNotAtAll",
		old: `last < 0 || size+last != len(entry)`,
		new: `last < 0`,
	}, {
		name: "objects share parts that a transform writes to", says: readOnly, file: "accumulator/stream/sharing.go", in: "kates", caught: "TestG10ATransformWritesToNothingThatOtherObjectsShare",
		old: `.(Sharer); ok && s.transform == nil {`,
		new: `.(Sharer); ok {`,
	}, {
		name: "one write to a shared part looks like several", says: "a write to one of them is seen in all", file: "internal/mutation/detector.go", caught: "TestG10AWriteToAPartThatObjectsShareIsSaidToBeOne",
		old: `g := d.common(f); g != nil {`,
		new: `g := d.common(f); false {`,
	}, {
		name: "whatever was written to alike shares memory", says: "a write to one of them is seen in all", file: "internal/mutation/common.go", caught: "TestG10AWriteToAPartThatObjectsShareIsSaidToBeOne",
		old: `if parts[at] {`,
		new: `if at != nil {`,
	}, {
		name: "shared parts are compacted", says: readOnly, file: "internal/wire/decode.go", caught: "TestG10WhatObjectsShareIsNotTouchedWhenTheyAreStored",
		old: `p != nil && d.parts == nil`,
		new: `p != nil`,
	},
}
