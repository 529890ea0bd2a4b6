package mutants

const (
	poolFile = "internal/wire/ordered/pool.go"
	lineFile = "internal/wire/ordered/line.go"

	itemsFile   = "internal/wire/items.go"
	backlogFile = "internal/wire/backlog.go"

	aheadFile = "accumulator/stream/ahead.go"

	inOrder   = "what is decoded side by side is taken in, in its order, and is bounded in bytes"
	noneWaits = "no event waits for the next one"
	onePage   = "the next page of a list is asked for while one is read"
)

// sideBySide are mistakes in running functions side by side.
var sideBySide = []mutant{
	{
		name: "functions without bytes are not bounded", says: inOrder, file: lineFile, caught: "TestSmallFunctionsAreBoundedToo",
		old: `max(bytes, 0) + overhead`, new: `max(bytes, 0) + overhead/overhead`,
	}, {
		name: "a function comes in while there is room for any", says: inOrder, file: poolFile, caught: "TestNoMoreIsHeldThanTheBound",
		old: `p.held+t.bytes > p.bytes()`, new: `p.held > p.bytes()`,
	}, {
		name: "a line takes room that is another's", says: inOrder, file: lineFile, caught: "TestALineGoesOnWhileAllHelpersAreBusyWithAnother",
		old: `l.Len() == 0)) {`, new: `true)) {`,
	}, {
		name: "a line waits for helpers that are busy", says: inOrder, file: lineFile, caught: "TestALineGoesOnWhileAllHelpersAreBusyWithAnother",
		old: `if t := &l.jobs[i].task; l.pool.claim(t) {`, new: `if t := &l.jobs[i].task; l.pool == nil && l.pool.claim(t) {`,
	}, {
		name: "a closed line runs what it was given", says: inOrder, file: lineFile, caught: "TestAfterCloseNothingRuns",
		old: `		never := l.pool.claim(&j.task)`, new: `		never := l.pool == nil && l.pool.claim(&j.task)`,
	}, {
		name: "a closed line does not wait for what runs", says: inOrder, file: lineFile, caught: "TestAfterCloseNothingRuns",
		old: `		<-j.done
		l.pool.free(&j.task)
	}
`, new: `		l.pool.free(&j.task)
	}
`,
	}, {
		name: "there are more helpers than allowed", says: inOrder, file: poolFile, caught: "TestLinesHandOutEachResultOnceAndInOrderWithinTheBounds",
		old: `	if p.helping < most {`, new: `	if p.helping < most+4 {`,
	}, {
		name: "a function that has not returned has a result", says: inOrder, file: lineFile, caught: "TestAFunctionThatEndsItsGoroutineDoesNotEndThePool",
		old: `	case !j.ended:`, new: `	case !j.ended && l == nil:`,
	}, {
		name: "a helper is lost with the function that ends it", says: inOrder, file: poolFile, caught: "TestAFunctionThatEndsItsGoroutineDoesNotEndThePool",
		old: `		if !over { //`, new: `		if !over && p == nil { //`,
	}, {
		name: "a list that is cut hides what is wrong before", says: inOrder, file: listedFile, caught: "TestTheErrorOfAListIsThatOfTheFirstItemThatIsWrong",
		old: `if earlier := all.flush(); earlier != nil {`, new: `if earlier := all.flush(); earlier != nil && err == nil {`,
	}, {
		name: "an item is copied where there is one core", says: inOrder, file: itemsFile, caught: "TestWithOneCoreAnItemIsTakenInBeforeTheNextIsRead",
		old: `	if !i.pool.Helps() {`, new: `	if i.pool == nil {`,
	}, {
		name: "items behind a bad one are taken in", says: inOrder, file: itemsFile, caught: "TestTheErrorOfAListIsThatOfTheFirstItemThatIsWrong",
		old: `		if d.err != nil {
			return d.err`, new: `		if d.err != nil {
			continue`,
	}, {
		name: "pages are asked for one after the other", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestTheNextPageIsAskedForWhileOneIsRead",
		old: `head.Continue == "" || !a.quick`, new: `head.Continue != "" || !a.quick`,
	}, {
		name: "a slow server is asked for two pages at a time", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestPagesThatComeSlowlyAreAskedForOneAfterTheOther",
		old: `time.Since(begun) < unhurried`, new: `time.Since(begun) < 9*unhurried`,
	}, {
		name: "a page loses the time that it waited for its turn", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestAPageHasItsTimeWhenItsTurnComes",
		old: `	r.late.Reset(r.most) // it`, new: `	// it`,
	}, {
		name: "a page ahead is the one that is wanted", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestAPageThatWasNotWantedIsGivenUp",
		old: `	if r == nil || r.options != o {`, new: `	if r == nil {`,
	}, {
		name: "a page that nobody reads stays open", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestAPageThatWasNotWantedIsGivenUp",
		old: `		r.page.Close()`, new: `		_ = r.page`,
	}, {
		name: "a page ahead has a version beside its token", says: onePage, file: aheadFile, in: "accumulator/stream", caught: "TestG1OnePageAheadChangesNothingOfAList",
		old: `		after.ResourceVersion, after.ResourceVersionMatch = "", ""
`, new: ``,
	}, {
		name: "the metadata of a list are told behind its items", says: onePage, file: framed, in: "internal/wire/frames", caught: "TestTheMetadataOfAListAreToldBeforeItsItemsIfTheyComeBefore",
		old: `			err := l.read(&l.meta, "metadata")
			if !items && err == nil {`, new: `			err := l.read(&l.meta, "metadata")
			if items && err == nil {`,
	}, {
		name: "no source says where the next page begins", says: onePage, file: listedFile, in: "kates", caught: "TestG1ThePageAheadIsAskedForWhileOneIsRead",
		old: `Accept: l.accept, Head: head}`, new: `Accept: l.accept}`,
	}, {
		name: "events wait for the next ones", says: noneWaits, file: backlogFile, caught: "TestNoEventWaitsForTheNextOne",
		old: `	if err := c.flush(); err != nil {`, new: `	if err := error(nil); err != nil {`,
	}, {
		name: "the last events of a read overtake those before", says: inOrder, file: backlogFile, caught: "TestG5EventsComeAsTheServerSentThemWhoeverDecodesThem",
		old: `	case b.line.Len() == 0:`, new: `	case b.line.Len() >= 0:`,
	}, {
		name: "one core decodes all events", says: "on the cores that are idle", file: backlogFile, caught: "TestEventsThatComeTogetherAreDecodedSideBySide",
		old: `	if alone || !b.pool.Helps() {`, new: `	if alone || b != nil {`,
	}, {
		name: "a watch that was stopped hands out what it has", says: "no goroutine is left", file: "internal/wire/watch.go", caught: "TestG11AWatchThatIsStoppedDecodesNoMore",
		old: `	case <-r.done:
		return errOver
	}`, new: `	case <-r.done:
		return nil
	}`,
	},
}
