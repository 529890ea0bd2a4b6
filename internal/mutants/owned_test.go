package mutants

const (
	applied = "internal/applied/fields.go"
	recall  = "internal/applied/recall.go"
	entries = "internal/applied/entries.go"

	ownsJust = "TestAnApplierOwnsJustWhatItAppliesOrSomebodyHasChangedIt"
	again    = "TestApplyOwnedOfAProcessThatBeginsAnewKnowsWhatWasAppliedFromItsWatchOfAGoType"
	worth    = "TestAListOfWhatWasAppliedIsMadeWhereItIsWorthIt"
)

// owned breaks how it is found out that applying again changes nothing.
var owned = []mutant{
	{
		name: "an object of an owner elsewhere has a reference", says: "They get no owner reference", file: "internal/applied/wanted.go",
		in: "kates", caught: "TestTheObjectsOfARemoteOwnerHaveALabelAndNoReference",
		old: `	case s.Remote:
	case s.Plain:`, new: `	case s.Remote:
		w.Owners = append(w.Owners, owners.ControllerReference(s.Owner))
		return nil
	case s.Plain:`,
	},
	{
		name: "an object without the label belongs to an owner elsewhere", says: "Whoever removes it releases the object", file: "internal/applied/remote.go",
		in: "kates", caught: "TestObjectsOfOthersAreNotThoseOfARemoteOwner",
		old: `		return o.GetLabels()[OwnerLabel] == string(s.Owner.GetUID())`, new: `		return true`,
	},
	{
		name: "fields that are no longer applied stay", says: "If the client knows that nothing would change, it sends nothing", file: applied, caught: ownsJust,
		old: `			_, ok := part[*e.FieldName]
			return ok
`, new: `			return true
`,
	},
	{
		name: "fields that others have changed stay theirs", says: "The managed fields tell that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `			if !o.has(set, fieldpath.PathElement{FieldName: &name}, part) {
				return false
			}
`, new: `			if e := (fieldpath.PathElement{FieldName: &name}); !o.has(set, e, part) && set.Members.Has(e) {
				return false
			}
`,
	},
	{
		name: "items that others have taken stay theirs", says: "The managed fields tell that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `return all(set, one) && !slices.Contains(found, nil)`, new: `return all(set, one) && !slices.Contains(found[:0], nil)`,
	},
	{
		name: "an item is taken for two", says: "The managed fields tell that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `i < 0 || found[i] != nil && !found[i].Equals(e)`, new: `i < 0`,
	},
	{
		name: "what a schema has lost is not missed", says: "every applied value must still exist",
		file: applied, caught: "TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy",
		old: `o.hasWhole(e, part) && o.kept(part)`, new: `o.hasWhole(e, part)`,
	},
	{
		name: "items stay in the order of others", says: "The items of lists must also be in their order", file: applied, caught: "TestTheOrderOfItemsIsPartOfWhatIsApplied",
		old: `if i <= last {`, new: `if i <= last && i < 0 {`,
	},
	{
		name: "what others have emptied counts as whole", says: "The managed fields tell that nobody has changed any of it since",
		file: applied, in: "kates", caught: "TestAPartOfWhichOthersHaveChangedEverythingIsNotOwned",
		old: `return len(part) == 0 || o.Whole(o.path, part)
	case []any`, new: `return true
	case []any`,
	},
	{
		name: "what was applied to an older object counts", says: "every change by others since the last apply counts", file: recall, caught: worth,
		old: `|| coherence.Newer(now.GetResourceVersion(), o.RV) {`, new: `|| coherence.Newer("", o.RV) {`,
	},
	{
		name: "everything is listed for one", says: "if that saves requests", file: recall, caught: worth,
		old: `r.missed <= r.worth ||`, new: ``,
	},
	{
		name: "a role is applied beside what needs it", says: "the API server refuses an object for want of another one",
		file: "kates/owned_set.go", caught: "TestAnObjectOfAnOwnedSetWaitsForThoseThatTheServerWantsFirst",
		old: `(foundations[last] || foundations[next])`, new: `(foundations[last] && foundations[next])`,
	},
	{
		name: "InOrder is ignored", says: "With InOrder each object waits for the one",
		file: "kates/owned_set.go", caught: "TestAnObjectOfAnOwnedSetWaitsForThoseThatTheServerWantsFirst",
		old: `if a.given.InOrder || last`, new: `if last`,
	},
	{
		name: "one object is written at a time", says: "Objects are applied side by side",
		file: "kates/write_many.go", caught: "TestObjectsOfAnOwnedSetAreAppliedAndPrunedSideBySide",
		old: `const writesAtOnce = 10`, new: `const writesAtOnce = 1`,
	},
	{
		name: "the result is in the order of the answers", says: "The result and the errors are always in the order of Objects",
		file: "kates/owned_set.go", caught: "TestObjectsOfAnOwnedSetAreAppliedAndPrunedSideBySide",
		old: `for _, end := range ends {`, new: `for i := range ends {
		end := ends[len(ends)-1-i]`,
	},
	{
		name: "what was applied to an older version counts", says: "An entry is about one version of an object",
		file: entries, caught: "TestWhatAManagerHasAppliedIsKnownOfTheVeryVersionThatWasRead",
		old: `if !ok || at.atRV != now.GetResourceVersion() {`, new: `if !ok {`,
	},
	{
		name: "what was applied to objects that are gone is kept", says: "objects that nobody holds are dropped",
		file: entries, caught: "TestG3WhatIsKnownOfAppliesIsBoundedByTheObjectsThatAreHeld",
		old: `return e.object.Value() == nil })`, new: `return false })`,
	},
	{
		name: "what was applied is forgotten with a copy of the object", says: "objects that nobody holds are dropped",
		file: entries, caught: "TestG3WhatIsKnownOfAppliesIsBoundedByTheObjectsThatAreHeld",
		old: `ok && was.atRV == rv && was.object.Value() != nil {`, new: `ok && was.atRV == "" {`,
	},
	{
		name: "the owners of another object come in", says: "most objects of a kind have the same fields, which are in memory once",
		file: entries, caught: "TestFieldsThatDifferByTheirOwnersAloneAreInMemoryOnce",
		old: `strings.ReplaceAll(fields, placeOf(i), string(owner.UID))`, new: `strings.ReplaceAll(fields, placeOf(i+1), string(owner.UID))`,
	},
	{
		name: "what another manager has applied is ours", says: "reads what a manager has applied",
		file: "internal/wire/frames/identity.go", caught: "TestWhatAManagerHasAppliedIsReadFromTheBytesOfAnObject",
		old: `if applied && string(of[entryManager]) == manager {`, new: `if applied {`,
	},
	{
		name: "what is said of applies is not read", says: "The managed fields tell that nobody has changed any of it since",
		file: "internal/wire/applied.go", in: "kates", caught: again,
		old: `if fields != nil && stream.Fault(o) == nil {`, new: `if fields == nil && stream.Fault(o) != nil {`,
	},
	{
		name: "what one manager has applied another has", says: "The managed fields tell that nobody has changed any of it since",
		file: "kates/owned_apply.go", in: "kates", caught: again,
		old: `if a.options.fieldManager != managerOr(core.fieldManager) {`, new: `if core == nil {`,
	},
	{
		name: "a list that others have added to is as it was given", says: "Lists have as many items",
		file: "internal/applied/values.go", caught: "TestALiveObjectHasTheGivenValuesWithWhatTheServerAdds",
		old: `if given.Len() != live.Len() {`, new: `if given.Len() > live.Len() {`,
	},
	{
		name: "the order of owners is that of values", says: "The items of lists must also be in their order",
		file: applied, caught: "TestTheOrderOfOwnersIsNotSeenFromTheValuesOfAnObject",
		old: `o.AsGiven && !o.inMetadata()`, new: `o.AsGiven`,
	},
	{
		name: "any owner is the owner", says: "with theOwner in place of the UID of the only owner",
		file: applied, caught: "TestAnEntryOwnsJustWhatItsFieldsOwn",
		old: `owner != nil && owner["uid"] == string(e.owners[0].UID)`, new: `owner != nil`,
	},
	{
		name: "the UID of the owner is one wherever it stands", says: "if the UID is not just that of the owner",
		file: entries, caught: "TestAnEntryOwnsJustWhatItsFieldsOwn",
		old: `strings.Count(text, placeOf(0)) != 1`, new: `strings.Count(text, placeOf(0)) == 0`,
	},
	{
		name: "a comparison of fields is left before its end", says: "It may be called concurrently for different owners",
		file: applied, caught: "TestSeveralFieldsThatAreNotAppliedAreFoundWithoutAPanic",
		old: `	set.Members.Iterate(each)
	set.Children.Iterate(each)
`, new: `	set.Members.Iterate(each)
	for e := range set.Children.All() {
		if each(e); !every {
			return false
		}
	}
`,
	},
}
