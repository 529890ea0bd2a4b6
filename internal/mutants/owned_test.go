package mutants

const (
	applied = "internal/applied/fields.go"
	recall  = "internal/applied/recall.go"

	ownsJust = "TestAnApplierOwnsJustWhatItAppliesOrSomebodyHasChangedIt"
	worth    = "TestAListOfWhatWasAppliedIsMadeWhereItIsWorthIt"
)

// owned breaks how it is found out that applying again changes nothing.
var owned = []mutant{
	{
		name: "fields that are no longer applied stay", says: "where this client knows that nothing would change", file: applied, caught: ownsJust,
		old: `			_, ok := part[*e.FieldName]
			return ok
`, new: `			return true
`,
	},
	{
		name: "fields that others have changed stay theirs", says: "the managed fields that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `			if !o.has(set, fieldpath.PathElement{FieldName: &name}, part) {
				return false
			}
`, new: `			if e := (fieldpath.PathElement{FieldName: &name}); !o.has(set, e, part) && set.Members.Has(e) {
				return false
			}
`,
	},
	{
		name: "items that others have taken stay theirs", says: "the managed fields that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `return all(set, one) && !slices.Contains(found, nil)`, new: `return all(set, one) && !slices.Contains(found[:0], nil)`,
	},
	{
		name: "an item is taken for two", says: "the managed fields that nobody has changed any of it since", file: applied, caught: ownsJust,
		old: `i < 0 || found[i] != nil && !found[i].Equals(e)`, new: `i < 0`,
	},
	{
		name: "what a schema has lost is not missed", says: "what was lost, because somebody wrote to the object while its kind's schema did not have a field, is put back",
		file: applied, caught: "TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy",
		old: `o.hasWhole(e, part) && o.kept(part)`, new: `o.hasWhole(e, part)`,
	},
	{
		name: "items stay in the order of others", says: "lists are to be in their order besides", file: applied, caught: "TestTheOrderOfItemsIsPartOfWhatIsApplied",
		old: `if i <= last {`, new: `if i <= last && i < 0 {`,
	},
	{
		name: "what others have emptied counts as whole", says: "the managed fields that nobody has changed any of it since",
		file: applied, in: "kates", caught: "TestAPartOfWhichOthersHaveChangedEverythingIsNotOwned",
		old: `return len(part) == 0 || o.Whole(o.path, part)
	case []any`, new: `return true
	case []any`,
	},
	{
		name: "what was applied to an older object counts", says: "any change counts that others have made since", file: recall, caught: worth,
		old: `|| coherence.Newer(now.GetResourceVersion(), o.RV) {`, new: `|| coherence.Newer("", o.RV) {`,
	},
	{
		name: "everything is listed for one", says: "if that is worth it", file: recall, caught: worth,
		old: `r.missed <= r.worth ||`, new: ``,
	},
}
