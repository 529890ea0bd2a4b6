package mutants

const (
	merge  = "accumulator/merge.go"
	fields = "accumulator/field.go"
)

// several is what can go wrong where one query is several watches, or where its kind goes away.
var several = []mutant{
	{
		name: "what leaves one watch of a union leaves the union", peer: torn, file: merge, caught: "TestG5AUnionNeitherTearsNorResurrectsThoughOneWatchIsLate",
		old: `if late != nil && !anew && (`,
		new: `if late = nil; late != nil && (`,
	},
	{
		name: "a watch that is late takes back what another has shown", peer: torn, file: merge, caught: "TestG5AUnionThatIsPutTogetherAnewTakesNothingBackThoughOneWatchIsLate",
		old: `return best, !coherence.Newer(shown.GetResourceVersion(), best.GetResourceVersion())`,
		new: `return best, shown != nil`,
	},
	{
		name: "that an object left is forgotten where another watch shows it older", peer: torn, file: merge, caught: "TestG8AnObjectThatMovesThereAndBackIsNeverOutOfAUnionThoughOneWatchIsLate",
		old: `(best == nil || coherence.Newer(left.at, best.GetResourceVersion()))`,
		new: `best == nil`,
	},
	{
		name: "a stream that takes another's place is not late", peer: torn, file: merge, caught: "TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate",
		old: `f.held == nil && !f.behind(parts[0])`,
		new: `true`,
	},
	{
		name: "what is held is as it was shown, however old", peer: torn, file: merge, caught: "TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming",
		old: `best = newer(best, left.last)`,
		new: `best = newer(best, nil)`,
	},
	{
		name: "a union is shown before its watches have come to one version", peer: torn, file: fields, caught: "TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming",
		old: `if coherence.Newer(f.target, p.sub.position()) {`,
		new: `if false {`,
	},
	{
		name: "an own write waits for the other watches of a union", peer: torn, file: subscription, caught: "TestG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming",
		old: `case after != nil || own:`,
		new: `case after != nil:`,
	},
	{
		name: "nobody helps a watch that is too quiet", peer: torn, file: "accumulator/manage.go", caught: "TestG5ADeletionThatOneWatchOfAUnionIsTooQuietToConfirmIsShownSoon",
		old: `if sub.stream.sync(ctx) == nil {`,
		new: `if sub.stream.sync(ctx) == nil && false {`,
	},
	{
		name: "objects of all namespaces are shown", peer: ignoresQuery, file: merge, caught: "TestG4ANamespaceSelectorFollowsTheLabelsOfNamespacesOwnWritesToo",
		old: `if f.within != nil && !f.within[key.Namespace] {`,
		new: `if f.within != nil && !f.within[key.Namespace] && false {`,
	},
	{
		name: "a namespace that is no longer wanted stays", peer: torn, file: fields, caught: "TestG1AQueryOverNamespacesIsOneWholeAndFollowsTheSet",
		old: `p.outgoing = !isFresh[p.sub.stream.key]`,
		new: `p.outgoing = false`,
	},
	{
		name: "a query that is added is shown by halves", peer: firstPage, file: "accumulator/update.go", caught: "TestG1AQueryOverNamespacesThatIsAddedAppearsWithAllOfThem",
		old: `whole := f.present || a.fieldComplete(f)`,
		new: `whole := true`,
	},
	{
		name: "a 404 on one version empties the kind", peer: emptied, file: "accumulator/feed.go", caught: "TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack",
		old: `if gone(ctx, f.stream.resource, f.stream.key.namespace, err) {`,
		new: `if gone(ctx, f.stream.resource, f.stream.key.namespace, err) || true {`,
	},
	{
		name: "a kind that is gone stays", peer: silent404, file: "accumulator/feed.go", caught: "TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack",
		old: `if gone(ctx, f.stream.resource, f.stream.key.namespace, err) {`,
		new: `if gone(ctx, f.stream.resource, f.stream.key.namespace, err) && false {`,
	},
}
