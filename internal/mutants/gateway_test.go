package mutants

const (
	gatewayLoops    = "examples/gateway/loops/gateway.go"
	gatewayRefusals = "examples/gateway/loops/refusals.go"
	gatewayRemote   = "examples/gateway/loops/clusters.go"
	gatewayProgram  = "examples/gateway/flags.go"

	refusedAlone = "what nginx refuses is served as it was, and everything else goes on"
	gatewayHeals = "the gateway serves on, and heals by itself"
	wholeGateway = "nothing is configured before everything is known"
)

// gateways are mistakes in examples/gateway.
var gateways = []mutant{
	{
		name: "a status undoes a refusal", says: refusedAlone, file: gatewayRefusals, caught: "TestTheReportOfARefusalDoesNotUndoIt",
		old: `	if a.GetGeneration() == 0 { //`,
		new: `	if a.GetGeneration() >= 0 { //`,
	}, {
		name: "a refused object has no last good version", says: refusedAlone, file: gatewayRefusals, caught: "TestARefusedObjectIsServedAsItWasAndSaysWhy",
		old: `	r.accepted = snap
`,
		new: ``,
	}, {
		name: "a refusal stays though the object is well", says: refusedAlone, file: gatewayRefusals, caught: "TestARefusedObjectIsServedAsItWasAndSaysWhy",
		old: `			delete(r.refused, uid) // it is gone, or well
`,
		new: ``,
	}, {
		name: "a last good version that is refused is tried for ever", says: refusedAlone, file: gatewayRefusals, caught: "TestALastGoodVersionThatIsRefusedLaterIsLeftOut",
		old: `		case before.lastGood != nil: //`,
		new: `		case before.lastGood == nil: //`,
	}, {
		name: "a refused route without a good version has a host", says: refusedAlone, file: "examples/gateway/translate/routes.go", in: "examples/gateway/loops", caught: "TestTheReportOfARefusalDoesNotUndoIt",
		old: `	if len(rules.all) == 0 || l.isolated(`,
		new: `	if l.isolated(`,
	}, {
		name: "a late refusal is not reported", says: refusedAlone, file: gatewayLoops, caught: "TestTheReportOfARefusalDoesNotUndoIt",
		old: `			kates.WithTriggers(g.wakes.report), `,
		new: `			`,
	}, {
		name: "what was told is forgotten while nginx looks at the fix", says: refusedAlone, file: "examples/gateway/report/report.go", in: "examples/gateway/loops",
		caught: "TestTheEndOfARefusalIsToldHoweverLongNginxTakes",
		old: `				told[r.Object.GetUID()] = before
`,
		new: ``,
	}, {
		name: "a broken Secret is not reported on itself", says: refusedAlone, file: "examples/gateway/translate/tls.go",
		caught: "TestABrokenSecretSaysWhatIsWrongAndNothingOfItsContent",
		old: `		t.problem(found, "InvalidCertificate", "%v", err)
`,
		new: ``,
	}, {
		name: "an object is blamed for a path of another one", says: refusedAlone, file: "examples/gateway/nginx/blame.go", caught: "TestAPathThatNginxRefusesIsTheFaultOfItsObjectsAlone",
		old: `			if had == 0 || len(l.Rules) > 0 { //`,
		new: `			if had >= 0 { //`,
	}, {
		name: "a start with the last configuration is not counted", says: gatewayHeals, file: "examples/gateway/nginx/nginx.go", caught: "TestAKilledNginxStartsWithTheLastConfigurationIfItRefusesTheNew",
		old: `= hash, time.Now(), time.Since(begin), s.Starts+1`,
		new: `= hash, time.Now(), time.Since(begin), s.Starts`,
	}, {
		name: "a configuration that waits is forgotten", says: gatewayHeals, file: gatewayLoops, caught: "TestNginxIsAskedAgainWhenItWaitsAndWhenItHasDied",
		old: `			return kates.Again(outcome.Again) //`,
		new: `			return nil //`,
	}, {
		name: "nobody sees that nginx has died", says: gatewayHeals, file: gatewayLoops, caught: "TestNginxIsAskedAgainWhenItWaitsAndWhenItHasDied",
		old: `kates.WithUnhealthyAfter(hangs), kates.WithTriggers(g.wakes.configure),`,
		new: `kates.WithUnhealthyAfter(hangs),`,
	}, {
		name: "a lost lease ends the gateway", says: gatewayHeals, file: gatewayLoops, caught: "TestALeaderThatHasLostItsLeaseFollowsAndLeadsAgain",
		old: `		if !errors.Is(err, kates.ErrLeadershipLost) {`,
		new: `		if !errors.Is(err, kates.ErrLeadershipLost) || err != nil {`,
	}, {
		name: "an outage at the start ends the gateway", says: gatewayHeals, file: gatewayLoops, caught: "TestAGatewayThatStartsDuringAnOutageWaitsForItsEnd",
		old: `		if !errors.Is(err, kates.ErrIncompleteDiscovery) {`,
		new: `		if !errors.Is(err, kates.ErrIncompleteDiscovery) || err != nil {`,
	}, {
		name: "the first configuration waits for no other cluster", says: wholeGateway, file: gatewayLoops, caught: "TestEndpointsOfOtherClustersAreServedAndStayWhenTheyDoNotAnswer",
		old: `		case <-g.remote.known:
`,
		new: `		default:
`,
	}, {
		name: "changes in other clusters are not served", says: gatewayHeals, file: gatewayRemote, caught: "TestEndpointsOfOtherClustersAreServedAndStayWhenTheyDoNotAnswer",
		old: `			wake(g.wakes.configure)
`,
		new: ``,
	}, {
		name: "the addresses of the gateway's Service are not known", says: "statuses say the addresses of the Service", file: gatewayProgram, in: "examples/gateway", caught: "TestTheGatewaysOwnServiceIsSeenInWhateverNamespaceItIs",
		old: `			q.Transform = nil // it drops the status
`,
		new: ``,
	},
}
