package mutants

const (
	hiding  = "kates/page/hide.go"
	serving = "kates/page/serve.go"
	finding = "kates/page/problems.go"
	silence = "kates/page/problems_silent.go"

	neverShown = "data of Secrets is never shown, nor what a redaction hides"
	whoLooks   = "the page is read-only, and other sites get nothing"
	saysWrong  = "the page says what is wrong"
)

// statusPages are mistakes in the status page.
var statusPages = []mutant{
	{
		name: "what was watched does not say that an object is a Secret", says: neverShown, file: hiding,
		caught: "TestSecretsAreNeverShownWhateverTheirForm",
		old:    `if isSecret || isTyped || u.GetKind() == secret.Kind {`, new: `if isTyped || u.GetKind() == secret.Kind {`,
	},
	{
		name: "an object's kind does not say that it is a Secret", says: neverShown, file: hiding,
		caught: "TestASecretThatAQueryOfAnythingElseHoldsIsHidden",
		old:    `if isSecret || isTyped || u.GetKind() == secret.Kind {`, new: `if _ = isTyped; isSecret {`,
	},
	{
		name: "a copy of a hidden value stays in the object", says: neverShown, file: hiding,
		caught: "TestWhatARedactionHidesIsNowhereAndTheObjectStaysAsItIs",
		old: `	c.hideCopies()
`, new: ``,
	},
	{
		name: "the applied object in an annotation is shown", says: neverShown, file: hiding,
		caught: "TestWhatARedactionHidesIsNowhereAndTheObjectStaysAsItIs",
		old:    `annotations[lastApplied] = hidden // a copy`, new: `_ = hidden // a copy`,
	},
	{
		name: "what a decoded Secret has beside its data is shown", says: neverShown, file: hiding,
		caught: "TestSecretsAreNeverShownWhateverTheirForm",
		old:    `return secret.HideOwn(object,`, new: `return secret.Hide(object,`,
	},
	{
		name: "an error quotes what a redaction hides", says: neverShown, file: "kates/page/members.go",
		caught: "TestWhatARedactionHidesIsNowhereAndTheObjectStaysAsItIs",
		old:    `case p.redact != nil:`, new: `case false:`,
	},
	{
		name: "why an object is left out quotes it", says: neverShown, file: "kates/page/objects.go",
		caught: "TestSecretsAreNeverShownWhateverTheirForm",
		old:    `	to.Invalid = scrub(p.text(o.Invalid), to.Versions)`, new: `	to.Invalid = p.text(o.Invalid)`,
	},
	{
		name: "hidden values that differ look alike", says: "whether they differ is shown", file: "kates/page/compare.go",
		caught: "TestThatHiddenValuesDifferIsShown",
		old:    `	x, inA := a.content.whole[path]`, new: `	a, b = Version{}, Version{}; x, inA := a.content.whole[path]`,
	},
	{
		name: "the page answers a POST", says: whoLooks, file: serving, caught: "TestAPageIsReadOnly",
		old: `if r.Method != http.MethodGet && r.Method != http.MethodHead {`, new: `if false {`,
	},
	{
		name: "any name may point to the page", says: whoLooks, file: serving, caught: "TestAPageIsForNamesThatNoOtherSiteHas",
		old: `return host == "" || !strings.Contains(host, ".") ||`, new: `return host == "" || true ||`,
	},
	{
		name: "a script of another site may ask", says: whoLooks, file: serving,
		caught: "TestScriptsAndFramesOfOtherSitesAreRefusedAndLinksAreNot",
		old:    `return (site == "cross-site" || site == "same-site") &&`, new: `return site == "same-site" &&`,
	},
	{
		name: "a page has an inline style", says: whoLooks, file: serving, caught: "TestAPageHasNothingInlineAndNothingFromElsewhere",
		old: `style-src 'self';`, new: `style-src 'self' 'unsafe-inline';`,
	},
	{
		name: "a silent watch is no problem", says: saysWrong, file: silence, caught: "TestEachCauseIsSaidInWordsWithWhatToDo",
		old: `	case age > 0:`, new: `	case age < 0:`,
	},
	{
		name: "a watch is silent before the first bookmark of a real server", says: saysWrong, file: finding,
		caught: "TestAWatchIsSilentOnlyAfterTheTimeOfARealServersFirstBookmark",
		old:    `quietWatch   = 125 * time.Second`, new: `quietWatch   = 90 * time.Second`,
	},
	{
		name: "a watch to which nothing ever came is silent since its last new opening", says: saysWrong, file: silence,
		caught: "TestASilentWatchSaysWhetherOthersGetBookmarksAndItsRowsAreWarnings",
		old: `		p.Since = s.Since
`, new: ``,
	},
	{
		name: "a watch that was half open is forgotten at once", says: saysWrong, file: silence,
		caught: "TestAWatchThatWasHalfOpenIsAProblemForSomeMinutes",
		old:    `	case again > 0:`, new: `	case again < 0:`,
	},
	{
		name: "an object that is left out looks as if the snapshot had it", says: "the snapshot's column says that it is left out",
		file: "kates/page/objects.go", caught: "TestTheSnapshotsColumnOfAnObjectThatIsLeftOutSaysSo",
		old: `	if to.Invalid != "" {
`, new: `	if false {
`,
	},
	{
		name: "requests for what counts as empty are failures", says: "what counts as empty is no failure on any page",
		file: "kates/page/pages.go", caught: "TestAQueryThatCountsAsEmptyIsNoFailureOnAnyPage",
		old: `r.Empty = countsAsEmpty(s, &r)`, new: `r.Empty = false`,
	},
	{
		name: "the reason on the card of invalid objects is not redacted", says: neverShown, file: silence,
		caught: "TestTheCardOfInvalidObjectsNamesOne",
		old:    `f.page.invalidText(place{c.member, c.Report, w, q}, of[0])`, new: `of[0].Why`,
	},
	{
		name: "quick watches push the snapshots of others out", says: "each watch keeps its share",
		file: "kates/page/recent.go", caught: "TestSnapshotsCanBeThoseOfOneWatchAndQuickOnesDoNotPushTheOthersOut",
		old: `return r.of[s.ID] == most })`, new: `return r.of[s.ID] > 0 })`,
	},
	{
		name: "a kind that is optional is a failure", says: saysWrong, file: finding, caught: "TestEachCauseIsSaidInWordsWithWhatToDo",
		old: `		p.Effect = Note
`, new: ``,
	},
	{
		name: "old failures of requests are recent", says: saysWrong, file: "kates/page/requests.go",
		caught: "TestFailuresOfRequestsAreRecentForSomeMinutes",
		old: `		row.turn(now)
`, new: ``,
	},
	{
		name: "the page samples each second for ever", says: "each second while somebody looks", file: "kates/page/page.go",
		caught: "TestSamplesComeEachSecondWhileSomebodyLooksAndSeldomOtherwise",
		old:    `if !looked.IsZero() && time.Since(looked) < watchedFor {`, new: `if !looked.IsZero() {`,
	},
	{
		name: "a page makes all objects of a query", says: "makes what it shows", file: "kates/page/objects.go",
		caught: "TestAPageOf100000ObjectsMakesWhatItShowsAndReadsNoObject",
		old:    `if len(o.Objects) == limit {`, new: `if len(o.Objects) == limit && limit > maxPerPage {`,
	},
	{
		name: "a snapshot is remembered with all its changes", says: "what the page remembers has a bound",
		file: "kates/page/recent.go", caught: "TestTheLastSnapshotsAreRememberedAndNoMore",
		old: `return len(s.Deltas) < maxChanges`, new: `return true`,
	},
}
