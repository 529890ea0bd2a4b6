package mutants

const (
	poolFile = "internal/wire/ordered/pool.go"
	lineFile = "internal/wire/ordered/line.go"

	itemsFile = "internal/wire/items.go"

	inOrder = "what is decoded side by side is taken in, in its order, and is bounded in bytes"
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
	},
}
