package mutants

const (
	blindPatches = "internal/patch/blind.go"
	jsonPatches  = "internal/patch/jsonpatch.go"

	names = "TestABlindPatchNamesWhatChangedWhereElementsStay"
)

// changing are mistakes in changes of objects that are only partly known.
var changing = []mutant{
	{
		name: "an error without a status is a success", says: "is an error; the watch then tells what happened", file: "kates/write.go",
		caught: "TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite",
		old: `	case err != nil:
		begun.Abandon()`,
		new: `	case apierrors.ReasonForError(err) != "":
		begun.Abandon()`,
	},
	{
		name: "a refusal is a success", says: "Errors of the server keep their type", file: "kates/write.go",
		caught: "TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite",
		old: `	case err != nil:
		begun.Abandon()`,
		new: `	case err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err):
		begun.Abandon()`,
	},
	{
		name: "a write that failed is an own write", says: "A write whose outcome is unknown is an error", file: "kates/write.go",
		caught: "TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite",
		old: `		begun.Abandon()
		return nil, o.failed(op, err)`,
		new: `		c.commit(ctx, begun, o, a.Outcome)
		return nil, o.failed(op, err)`,
	},
	{
		name: "a Get drops pending writes", says: "A Get does not change what watches show", file: "kates/client_read.go",
		caught: "TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown/Get",
		old: `	got, err := c.core.get(ctx, o)
`, new: `	got, err := c.core.get(ctx, o)
	_ = c.core.streams.Begin(o.resource, o.key()).Commit(ctx, stream.Outcome{Write: coherence.Write{Key: o.key()}})
`,
	},
	{
		name: "a List drops pending writes", says: "A List does not change what watches show", file: "kates/client_read.go",
		caught: "TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown/List",
		old: `	items, err := c.listAll(ctx, r, compiled)
`, new: `	items, err := c.listAll(ctx, r, compiled)
	for _, u := range items {
		key := objects.KeyOf(u)
		_ = c.core.streams.Begin(r, key).Commit(ctx, stream.Outcome{Write: coherence.Write{Key: key}})
	}
`,
	},
	{
		name: "a GetCached reads past the own writes", says: "the answer contains the client's own writes", file: "accumulator/stream/lookup.go",
		in: "kates", caught: "TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown/GetCached",
		old: `shown: s.store.read(key), synced`, new: `shown: s.store.objects[key], synced`,
	},
	{
		name: "lists are replaced though elements stay", says: "fields that T does not know stay", file: blindPatches, caught: names,
		old: `if i >= 0 && !plain(merge[j]) {`, new: `if i >= 0 && j < 0 && !plain(merge[j]) {`,
	},
	{
		name: "members are put into objects that may not be there", says: "an object that is either empty or absent", file: jsonPatches, caught: names,
		old: `p.unknown = p.unknown || !proven(o)`, new: ``,
	},
	{
		name: "members are removed that may not be there", says: "an object that is either empty or absent", file: jsonPatches, caught: names,
		old: `p.unknown = p.unknown || !proven(old)`, new: ``,
	},
	{
		name: "elements are removed from the front", says: "fields that T does not know stay", file: jsonPatches, caught: names,
		old: `for i := len(from) - 1; i >= 0; i-- {`, new: `for i := range from {`,
	},
	{
		name: "a JSON patch that is refused is an error", says: "if the server refuses the patch, Modify reads the object", file: blindPatches,
		in: "kates", caught: "TestModifyReadsTheObjectWhereItsJSONPatchIsRefused",
		old: `return p.Type == types.JSONPatchType && (`, new: `return false && (`,
	},
	{
		name: "conditions are looked for in any Go type", says: "if its conditions are of []metav1.Condition", file: "internal/conditions/conditions.go",
		caught: "TestATypeShowsConditionsWhereItsJSONHasThemAndAllOfThem",
		old:    `return err == nil && Find(u, "Shown") != nil`, new: `return err == nil && u != nil`,
	},
	{
		name: "a finalizer is for whoever has the name", says: "if another one has its name by now, nothing is done", file: "kates/write_modify.go",
		in: "kates/katestest", caught: "TestSuite/UnderFinalizerNothingIsDoneToAnotherObjectOfTheName",
		old: `m.bound && uid != "" && m.options.uid == nil {`, new: `m.bound && uid == "?" {`,
	},
	{
		name: "what the server drops of a status is no error", says: "What the server drops is an error", file: "kates/write_status.go",
		in: "kates/katestest", caught: "TestSuite/G4WhatTheServerDropsOfAStatusIsAnErrorAndTheRestIsStored",
		old: `	if op.subresource != statusSubresource {
`, new: `	if op.subresource != "" {
`,
	},
}
