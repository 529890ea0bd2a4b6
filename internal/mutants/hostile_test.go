package mutants

const (
	hostile     = "internal/hostile"
	watchReader = "internal/wire/watch.go"
	judges      = "accumulator/stream/unreadable.go"
	follows     = "accumulator/stream/watching.go"

	isTold       = "TestG5G8AWatchThatIsBrokenOrHostileTakesNothingBackAndIsNotOpenedInALoop/"
	inPart       = "TestG1G8AStreamedListThatIsBrokenOrHostileIsNotShownInPart/"
	harmless     = "takes nothing back, and the status says so"
	listsInstead = "one in four is followed by a list"
)

// unbelievable are mistakes with watches that are broken or hostile.
var unbelievable = []mutant{
	{
		name: "the kind of the envelope is not looked at", says: harmless, in: hostile, file: "internal/wire/frames/list.go", caught: isTold + "a_Secret,_typed_from_protobuf",
		old: `			kind = again(lastKind, value)`, new: `			kind = ""`,
	},
	{
		name: "an event of another namespace is taken", says: harmless, in: hostile, file: judges, caught: isTold + "another_namespace,_untyped",
		old: `s.key.namespace != "" && namespace != s.key.namespace`, new: `s.key.namespace != "" && namespace == ""`,
	},
	{
		name: "names that cannot be are taken", says: harmless, in: hostile, file: judges, caught: isTold + "a_name_with_a_slash,_untyped",
		old: `len(content.IsPathSegmentName(name)) == 0 && `, new: `len(content.IsPathSegmentName(name)) >= 0 && `,
	},
	{
		name: "names that are no UTF-8 are taken", says: harmless, in: hostile, file: judges, caught: isTold + "a_name_that_is_no_UTF-8,_untyped",
		old: `!strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || r < ' ' })`, new: `!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })`,
	},
	{
		name: "an event without a version is taken", says: harmless, in: hostile, file: judges, caught: isTold + "version_0,_untyped",
		old: `	if s.config.ByContent || coherence.Comparable(rv) ||`, new: `	if s.config.ByContent || what == "an event" || coherence.Comparable(rv) ||`,
	},
	{
		name: "a bookmark without a version is taken", says: harmless, in: hostile, file: stream, caught: isTold + "a_bookmark_without_a_version,_untyped",
		old: `	if err := s.unversioned("a bookmark", rv); err != nil {`, new: `	if err := s.unversioned("a bookmark", rv); err != nil && rv != "" {`,
	},
	{
		name: "a bookmark that goes back is not told", says: harmless, in: hostile, file: stream, caught: isTold + "a_bookmark_that_goes_back,_and_no_end,_untyped",
		old: `coherence.Newer(watchRV, rv) {`, new: `coherence.Newer(watchRV, rv) && false {`,
	},
	{
		name: "a watch that began behind the one before lies", says: harmless, in: "accumulator", file: "accumulator/stream/health.go",
		caught: "TestG8ABookmarkOfAWatchThatBeganBehindTheOneBeforeIsNoFailure",
		old:    `s.progress.watchRV = fromRV`, new: `_ = fromRV`,
	},
	{
		name: "a bookmark from before a Sync is told", says: harmless, in: "accumulator", file: stream, caught: "TestABookmarkFromBeforeASyncIsNoLie",
		old: `if watchRV := s.progress.watchRV; coherence`, new: `if watchRV := s.store.view.Position(); coherence`,
	},
	{
		name: "the error of a bookmark stays for ever", says: harmless, in: hostile, file: "accumulator/stream/health.go",
		caught: "TestAnEventThatMakesSenseEndsTheErrorOfABookmarkThatDidNot",
		old:    `return h.misread && h.set(Synced, nil)`, new: `return h.misread && false`,
	},
	{
		name: "an event of an unknown type is a change", says: harmless, in: hostile, file: watchReader, caught: isTold + "an_unknown_type,_untyped",
		old: `	case watch.Added, watch.Modified, watch.Deleted:
		o, err`, new: `	case watch.Added, watch.Modified, watch.Deleted, "CHANGED":
		e.Type = watch.Added
		o, err`,
	},
	{
		name: "an error without a Status is one without a text", says: harmless, in: hostile, file: watchReader, caught: isTold + "an_error_with_a_config_map,_untyped",
		old: `k != "" && k != "Status" {`, new: `k != "" && k != "Status" && false {`,
	},
	{
		name: "an error without a message says nothing", says: harmless, in: hostile, file: watchReader, caught: isTold + "an_error_without_a_message,_untyped",
		old: `s.Message = clip(s.Message); s.Message == "" {`, new: `s.Message = clip(s.Message); s.Message == "-" {`,
	},
	{
		name: "the text of a server is kept as long as it is", says: harmless, in: hostile, file: watchReader, caught: isTold + "an_error_with_a_message_that_is_too_long,_untyped",
		old: `	if len(text) > mostText {`, new: `	if len(text) > mostText<<20 {`,
	},
	{
		name: "an event that is cut is a plain end", says: harmless, in: hostile, file: "internal/wire/frames/watch.go", caught: isTold + "an_object_that_is_cut,_untyped",
		old: `	w.inside = true
`, new: `	w.inside = false
`,
	},
	{
		name: "two objects in one event are one", says: harmless, in: hostile, file: "internal/wire/frames/watch.go", caught: isTold + "two_objects,_untyped",
		old: "case string(key) == `\"object\"` && e.Object == nil:", new: "case string(key) == `\"object\"`:",
	},
	{
		name: "an error after a while is no failure", says: "with growing pauses", in: hostile, file: follows, caught: isTold + "an_error_500_after_a_while,_untyped",
		old: `end.barren = !news && (end.err != nil || lasted < steady)`,
		new: `end.barren = !news && lasted < steady`,
	},
	{
		name: "any event is news", says: "with growing pauses", in: hostile, file: follows, caught: isTold + "it_brings_an_old_event,_and_ends,_untyped",
		old: `news := brought && (!coherence.Comparable(from) || coherence.Newer(f.target.position(), from))`, new: `news := brought && from != "-"`,
	},
	{
		name: "no list is made where watches cannot be read", says: listsInstead, in: hostile, file: follows,
		caught: "TestG5G6AListShowsWhatAWatchThatCannotBeReadDoesNot",
		old:    `	case f.unread+1 == unreadableMost:`, new: `	case f.unread+1 == unreadableMost<<20:`,
	},
	{
		name: "a list is made after each watch that cannot be read", says: listsInstead, in: hostile, file: judges, caught: isTold + "no_name,_untyped",
		old: `const unreadableMost = 4`, new: `const unreadableMost = 1`,
	},
	{
		name: "an error is read however long it is", says: "cut off", file: "internal/wire/errors.go", caught: "TestAnErrorThatNeverEndsIsCutOffWhateverAnObjectMayHave",
		old: `const maxErrorBytes = 1 << 20`, new: `const maxErrorBytes = 64 << 20`,
	},
	{
		name: "a streamed list has items that cannot be", says: "is not shown in part", in: hostile, file: "accumulator/stream/listing.go", caught: inPart + "an_item_of_another_namespace,_untyped",
		old: `if err := l.stream.misfit(o); err != nil {`, new: `if err := l.stream.misfit(o); err != nil && o.GetName() == "-" {`,
	},
	{
		name: "a streamed list ends with a bookmark without a version", says: "is not shown in part", in: hostile, file: "accumulator/stream/listing.go", caught: inPart + "a_bookmark_at_0,_untyped",
		old: `rv == "" || rv == "0" {`, new: `rv == "-" {`,
	},
}
