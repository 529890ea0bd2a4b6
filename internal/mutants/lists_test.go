package mutants

const (
	answers    = "accumulator/stream/answer.go"
	pagesFile  = "accumulator/stream/pages.go"
	framed     = "internal/wire/frames/list.go"
	framedJSON = "internal/wire/frames/json.go"
	listedFile = "internal/wire/listed.go"
	decoding   = "internal/wire/decode.go"

	badList    = "TestG5G8NoBadListIsShownOrTakesAnythingBackAndTheStatusSaysWhatIsWrong/"
	neverEnds  = "TestAPieceThatNeverEndsIsReadUpToTheBound"
	customList = "TestTheFirstListOfACustomKindTellsWhatItsListsAreCalled"
	longAnswer = "TestAnAnswerIsBoundedByWhatItIsTheAnswerTo"
	stored     = "TestG8WhatAServerMayHaveStoredIsOneObjectThatDoesNotDecodeAndWhatNotIsABadList"
	noBadList  = "A list that is broken, a lie, or of something else"
	readTo     = "bounds the memory that one object may take while it is read"
)

// badLists are mistakes where a server's list is broken, or a lie.
var badLists = []mutant{
	{
		name: "a list of another kind is taken", says: noBadList, file: listedFile, in: "kates", caught: badList + "a_list_of_another_kind",
		old: `	if l.said == want || another && l.custom() {`, new: `	if l.said == want || another || l.custom() || kind != "" {`,
	},
	{
		name: "a list that does not say its kind is taken", says: noBadList, file: framed, in: "kates", caught: badList + "a_list_that_does_not_say_its_kind",
		old: `	if l.wanted.Accept == nil {`, new: `	if l.wanted.Accept == nil || last {`,
	},
	{
		name: "an empty list of a third name is taken", says: noBadList, file: listedFile, caught: customList,
		old: `l.items == 0 && name != nil:`, new: `l.items < 0 && name != nil:`,
	},
	{
		name: "a status is a list", says: noBadList, file: framed, in: "kates", caught: badList + "a_status_that_refuses",
		old: `	if l.kind == statusKind {
		quoted`, new: `	if l.kind == statusKind && last && l.seen == nil {
		quoted`,
	},
	{
		name: "a list may lack its items", says: noBadList, file: framed, in: "internal/wire/frames", caught: "TestWhatIsNoListIsAnErrorThatSaysSo",
		old: `	if err == nil && !items {`, new: `	if err == nil && !items && l.meta.Continue != "" {`,
	},
	{
		name: "the last of two equal members counts", says: noBadList, file: framed, in: "internal/wire/frames", caught: "TestWhatIsNoListIsAnErrorThatSaysSo",
		old: `	if slices.Contains(l.seen, member) {`, new: `	if slices.Contains(l.seen, member) && false {`,
	},
	{
		name: "a key that is written with an escape is another key", says: noBadList, file: framedJSON, in: "internal/wire/frames", caught: "TestAListMayHaveItsMetadataLastAndNoItems",
		old: `	if bytes.IndexByte(key, '\\') < 0 {`, new: `	if bytes.IndexByte(key, '\\') < 9 {`,
	},
	{
		name: "what follows a list is passed over", says: noBadList, file: "internal/wire/frames/frames.go", in: "internal/wire/frames", caught: "TestWhatIsNoListIsAnErrorThatSaysSo",
		old: `		err = broken("%q behind the end", c)`, new: `		_ = c`,
	},
	{
		name: "an object that is no JSON is one object that does not decode", says: noBadList, file: decoding, caught: stored,
		old: `	case err != nil && !json.Valid(raw): // the error may be of a user's type`, new: `	case err != nil && !json.Valid(raw) && raw == nil:`,
	},
	{
		name: "a key twice is passed over", says: noBadList, file: decoding, caught: stored,
		old: `	case err == nil && len(twice) > 0:`, new: `	case err == nil && len(twice) > 9:`,
	},
	{
		name: "what is no UTF-8 is replaced", says: noBadList, file: decoding, caught: stored,
		old: `	if !utf8.Valid(raw) {`, new: `	if !utf8.Valid(raw) && false {`,
	},
	{
		name: "an object of another kind is taken", says: noBadList, file: decoding, in: "kates", caught: badList + "an_object_of_another_kind",
		old: `got != kind {`, new: `got != kind && got.Empty() {`,
	},
	{
		name: "protobuf may be nested to any depth", says: readTo, file: decoding, caught: "TestNothingIsDecodedFromProtobufThatMayBeNestedToAnyDepth",
		old: `	under[t] = true
`, new: `	under[t] = false
`,
	},
	{
		name: "an object of another namespace is taken", says: noBadList, file: answers, in: "kates", caught: badList + "an_object_of_another_namespace",
		old: `	case s.key.namespace != "" && key.Namespace != s.key.namespace:`, new: `	case s.key.namespace != "" && key.Namespace == "":`,
	},
	{
		name: "an object may have any name", says: noBadList, file: answers, in: "kates", caught: badList + "a_name_that_is_a_path",
		old: `	return len(content.IsPathSegmentName(name)) == 0 && utf8`, new: `	return len(content.IsPathSegmentName(name)) < 9 && utf8`,
	},
	{
		name: "an object may be twice in a list", says: noBadList, file: "accumulator/stream/listing.go", in: "kates", caught: badList + "the_same_object_twice",
		old: `	case again && l.paged:`, new: `	case again && l.paged && l.newHistory:`,
	},
	{
		name: "a list may be of no version", says: noBadList, file: answers, in: "kates", caught: badList + "no_version",
		old: `	case rv == "", rv == "0":`, new: `	case rv == "0":`,
	},
	{
		name: "a list may be of version 0", says: noBadList, file: answers, in: "kates", caught: badList + "version_0",
		old: `	case rv == "", rv == "0":`, new: `	case rv == "":`,
	},
	{
		name: "a version that does not compare may follow one that does", says: noBadList, file: answers, in: "kates", caught: badList + "a_version_that_does_not_compare",
		old: `	case coherence.Comparable(beforeRV):`, new: `	case beforeRV == rv:`,
	},
	{
		name: "an old list that comes twice is a restored cluster", rule: 8, file: "accumulator/stream/listing.go", in: "kates", caught: badList + "an_old_version,_again_and_again",
		old: `			f.doubt = listOlder`, new: `			f.doubt = probeOlder`,
	},
	{
		name: "a list is not confirmed by a probe", rule: 8, file: "accumulator/stream/watching.go", caught: "TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt",
		old: `	if coherence.Newer(atLeastRV, rv) {`, new: `	if rv == "" && atLeastRV == "?" {`,
	},
	{
		name: "a probe may be answered without a version", rule: 8, file: "accumulator/stream/watching.go", in: "kates", caught: badList + "an_old_version,_and_a_probe_without_one",
		old: `		err = f.target.dated(list.ResourceVersion, f.target.position())`, new: `		_ = f.target`,
	},
	{
		name: "a server is followed in circles", says: noBadList, file: pagesFile, in: "kates", caught: badList + "pages_that_go_in_a_circle",
		old: `	case w.tokens[digest]:`, new: `	case w.tokens[digest] && w.pages > 900:`,
	},
	{
		name: "empty pages are followed for ever", says: noBadList, file: pagesFile, in: "kates", caught: badList + "empty_pages_for_ever",
		old: `	case w.empty >= emptyPages:`, new: `	case w.empty >= 3*emptyPages:`,
	},
	{
		name: "a list whose tokens expire is begun again for ever", says: noBadList, file: pagesFile, in: "kates", caught: badList + "tokens_that_expire_for_ever",
		old: `o.Continue != "" && o.Limit > 0 && expired(err):`, new: `o.Continue != "" && expired(err):`,
	},
	{
		name: "a server may ask for a pause of years", says: "asked again after 5 minutes", file: answers, in: "kates", caught: badList + "a_pause_of_years",
		old: `	if over(seconds) {
		return`, new: `	if seconds < 0 {
		return`,
	},
	{
		name: "nobody is told that a pause is too long", says: "asked again after 5 minutes", file: answers, in: "kates", caught: badList + "a_pause_of_years",
		old: `yes && over(seconds) {`, new: `yes && seconds < 0 {`,
	},
	{
		name: "an object has any size", says: readTo, file: "internal/wire/frames/frames.go", in: "internal/wire/frames", caught: "TestTheBoundIsForEachObjectAndNotForAllOfThem",
		old: `		larger := min(2*int64(len(b.buf)), b.most)`, new: `		larger := min(2*int64(len(b.buf)), 100*b.most)`,
	},
	{
		name: "a message of protobuf has any size", says: readTo, file: "internal/wire/frames/frames.go", in: "internal/wire/frames", caught: neverEnds,
		old: `	if int64(n) > b.most {
		return nil, b.tooLarge()
	}
`, new: ``,
	},
	{
		name: "white space never ends", says: readTo, file: framedJSON, in: "internal/wire/frames", caught: "TestMembersAndWhiteSpaceThatNeverEndAreReadUpToABound",
		old: `			if skipped >= b.most {`, new: `			if skipped >= 50*b.most {`,
	},
	{
		name: "an error never ends", says: "It also bounds every other answer that is read as a whole", file: "internal/wire/bounded.go", caught: longAnswer,
		old: `	if status >= http.StatusMultipleChoices || r.Method`, new: `	if r.Method`,
	},
	{
		name: "the bounds are not put to use", says: "It also bounds every other answer that is read as a whole", file: "kates/client_connection.go", caught: "TestAnAnswerThatNeverEndsEndsTheRequest",
		old: `, cfg.WrapTransport, s.bounds().Transport)`, new: `, cfg.WrapTransport)`,
	},
}
