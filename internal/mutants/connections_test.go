package mutants

const (
	connection = "kates/client_connection.go"
	move       = "accumulator/stream/move.go"
	link       = "internal/wire/link.go"

	leavesOld   = "TestAConnectionThatDoesNotWorkLeavesTheOldOneInUse"
	underLoad   = "TestG4G5CredentialsAreExchangedUnderLoadWithoutAGapOrASecondList"
	keepsAll    = "TestAStreamThatIsRefusedOverAnotherConnectionKeepsAllOnTheOldOne"
	laterOnes   = "TestEveryLaterRequestHasTheNewCredential"
	endsWhen    = "TestAWatchThatWasOpenedBeforeTheExchangeEndsWhenTheNextIsOpen"
	newHistory  = "TestAWatchThatWasHandedOverIsNotUsedAfterAListOfANewHistory"
	failsThere  = "TestAStreamThatFailsAlreadyMayFailInTheSameWayElsewhere"
	twiceShown  = "TestG5WhatBothWatchesBringAtAnExchangeIsShownOnce"
	restored    = "TestG5AClusterThatIsRestoredElsewhereIsFoundAtTheExchange"
	lateStreams = "TestNoStreamThatBeginsDuringATrialGoesUntried"
)

// connections are mistakes where a client moves to another connection.
var connections = []mutant{
	{
		name: "whichever cluster it is will do", says: "The cluster must be the same", file: connection, caught: leavesOld,
		old: `	case uid != *known:`, new: `	case false && uid != *known:`,
	},
	{
		name: "a cluster that does not say which it is will do", says: "The cluster must be the same", file: connection, caught: leavesOld,
		old: `	switch {
	case err != nil:
		return err
	case uid`, new: `	switch {
	case err != nil:
		return nil
	case uid`,
	},
	{
		name: "what is refused over the new connection is found out later", says: "Each watch of the client is opened over the new connection", file: move, caught: keepsAll,
		old: `err != nil && !st.fares(err) {`, new: `err != nil && false {`,
	},
	{
		name: "no stream is tried", says: "Each watch of the client is opened over the new connection", file: move, caught: keepsAll,
		old: `if _, tried := t.tried[st]; !tried {`, new: `if _, tried := t.tried[st]; !tried && false {`,
	},
	{
		name: "refused credentials are as good as those of now", says: "refused credentials are always an error", file: move, caught: failsThere,
		old: `case now == nil, apierrors.IsUnauthorized(err):`, new: `case now == nil:`,
	},
	{
		name: "what fails now keeps the client where it is", says: "may fail in the same way there", file: move, caught: failsThere,
		old: `	reason := apierrors.ReasonForError(err)
`, new: `	reason := metav1.StatusReasonUnknown
`,
	},
	{
		name: "a stream that begins during the trial is not tried", says: "Each watch of the client is opened over the new connection", file: move, caught: lateStreams,
		old: `	if len(untried) == 0 {
		t.to.Do()`, new: `	if len(untried) == 0 || len(t.tried) > 0 {
		untried = nil
		t.to.Do()`,
	},
	{
		name: "watches stay on the old connection", says: "every later request goes over the new connection", file: watching, caught: twiceShown,
		old: `if w.move != f.moves.Load() {`, new: `if false {`,
	},
	{
		name: "the old watch ends before the new one is open", says: "the new one is open before the old one ends", file: watching, caught: endsWhen,
		old: `		if last.moved {
`, new: `		if last.moved {
			w.Stop()
`,
	},
	{
		name: "the watch of the trial is not used", says: "the new one is open before the old one ends", file: move, caught: twiceShown,
		old: `	f.hand.next = w
`, new: `	w.Stop()
`,
	},
	{
		name: "a watch of the former history is read in the new one", says: "A cluster that was restored from a backup", file: move, caught: newHistory,
		old: `f.hand.ended || f.hand.lists != w.lists`, new: `f.hand.ended`,
	},
	{
		name: "a restored cluster at another address is not found out", says: "A cluster that was restored from a backup", file: move, caught: restored,
		old: `	if probe {
`, new: `	if false {
`,
	},
	{
		name: "a credential that was refused waits for its pause", says: "every later request goes over the new connection", file: "accumulator/stream/reflector.go", caught: failsThere,
		old: `case <-f.moved: // over`, new: `case <-make(chan int): // over`,
	},
	{
		name: "requests go on over the old connection", says: "every later request goes over the new connection", file: link, in: "kates", caught: laterOnes,
		old: `old := l.now.Swap(next)`, new: `old := next`,
	},
	{
		name: "a client that was returned before keeps its connection", says: "that of an object which the client has returned before", file: link, in: "kates", caught: laterOnes,
		old: `func (l *Link) Dynamic() dynamic.Interface { return dynamic.New(&linked{l, plain}) }`,
		new: `func (l *Link) Dynamic() dynamic.Interface { return l.Now().Dynamic() }`,
	},
	{
		name: "Close waits for a watch that is being opened", says: "ends every goroutine, watch and timer", file: "accumulator/stream/watching.go",
		caught: "TestG11CloseDoesNotWaitForAWatchThatIsBeingOpened",
		old: `ctx, cancel := context.WithCancelCause(ctx)
	late :=`,
		new: `ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	late :=`,
	},
	{
		name: "requests under way end with the old connection", says: "Requests under way finish where they are", file: "internal/wire/conns.go", caught: "TestG11AFormerConnectionIsClosedAfterItsLastRequest",
		old: `	if r == nil || r.closer != nil || len(c.requests) > 0 {
		return
	}
`, new: `	if r == nil || r.closer != nil {
		return
	}
	for each := range c.open {
		_ = each.Conn.Close()
	}
`,
	},
	{
		name: "the old connection is left open", says: "the old connection is closed after the last one", file: link, caught: "TestG11AFormerConnectionIsClosedAfterItsLastRequest",
		old: `	old.open.Retire(old.closeIdle, func() { l.forget(old) })
`, new: ``,
	},
}
