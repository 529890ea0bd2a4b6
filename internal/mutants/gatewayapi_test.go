package mutants

const (
	gatewayTranslation = "examples/gateway/translate/"

	narrowest    = "requests go to the narrowest listener that has their host, and to no other"
	apiReasons   = "the status of each object of the Gateway API says what is served, with the API's reasons"
	grantsDecide = "a reference to another namespace needs a ReferenceGrant there"
	publicPorts  = "redirects go to the ports that objects name"
	filtersHold  = "a rule that cannot be served as it is written is not served without what is unknown"
	ownAddresses = "each Gateway has an address of its own, and keeps it"
)

// gatewayAPI are mistakes in what examples/gateway makes of the Gateway API.
var gatewayAPI = []mutant{
	{
		name: "requests for a narrower listener go to a wider one", says: narrowest, file: gatewayTranslation + "conflicts.go",
		caught: "TestRequestsGoToTheNarrowestListenerAlone",
		old:    `	for ; covers(l.host, host); host = wider(host) {`,
		new:    `	for ; false; host = wider(host) {`,
	}, {
		name: "a listener without Routes has no server", says: narrowest, file: gatewayTranslation + "gateways.go",
		caught: "TestRequestsGoToTheNarrowestListenerAlone",
		old: `		t.serve(g)
`,
		new: ``,
	}, {
		name: "a younger Gateway takes an older one's listener", says: apiReasons, file: gatewayTranslation + "conflicts.go",
		caught: "TestOfTwoGatewaysAtOneAddressTheOlderKeepsItsListeners",
		old: `			l.compareWithOthers(taken)
`,
		new: `			_ = l
`,
	}, {
		name: "one host may be there twice", says: apiReasons, file: gatewayTranslation + "conflicts.go",
		caught: "TestAGatewayAndItsListenersSayWhatIsServed",
		old:    `	case l.host == other.host:`,
		new:    `	case l.host == other.host && false:`,
	}, {
		name: "one port may have two protocols", says: apiReasons, file: gatewayTranslation + "conflicts.go",
		caught: "TestAGatewayAndItsListenersSayWhatIsServed",
		old: `	case l.tls != other.tls:
		l.conflict(`,
		new: `	case l.tls != other.tls && false:
		l.conflict(`,
	}, {
		name: "references need no grant", says: grantsDecide, file: gatewayTranslation + "grants.go",
		caught: "TestBackendsThatCannotBeResolvedAnswer500AndSayWhy",
		old:    `	return r.namespace == r.toNamespace ||`,
		new:    `	return r.namespace != "" ||`,
	}, {
		name: "a grant for one namespace is one for all", says: grantsDecide, file: gatewayTranslation + "grants.go",
		caught: "TestBackendsThatCannotBeResolvedAnswer500AndSayWhy",
		old:    ` && string(f.Namespace) == r.namespace`,
		new:    ``,
	}, {
		name: "a grant for one Secret is one for all", says: grantsDecide, file: gatewayTranslation + "grants.go",
		caught: "TestAGatewayAndItsListenersSayWhatIsServed",
		old:    `			(to.Name == nil || *to.Name == "" || string(*to.Name) == r.toName)`,
		new:    `			(to.Name == nil || *to.Name == "" || string(*to.Name) != "")`,
	}, {
		name: "Routes of each namespace may attach", says: apiReasons, file: gatewayTranslation + "routes.go",
		caught: "TestARouteAttachesToTheListenersThatItsParentRefsName",
		old: `		return namespace == l.gateway.Namespace
`,
		new: `		return true
`,
	}, {
		name: "a Route that is not accepted counts as attached", says: apiReasons, file: gatewayTranslation + "routes.go",
		caught: "TestARuleThatCannotBeServedAsItIsWrittenAnswers500",
		old:    `		if holds(verdict) && t.refusal(r) == "" {`,
		new:    `		if t.refusal(r) == "" {`,
	}, {
		name: "a redirect goes to the port that nginx listens at", says: publicPorts, file: gatewayTranslation + "routerules.go",
		caught: "TestFiltersAndTimeoutsOfARule",
		old: `		to.Port = int(l.Port)
`,
		new: `		to.Port = l.port
`,
	}, {
		name: "a rule with an unknown filter is served without it", says: filtersHold, file: gatewayTranslation + "routerules.go",
		caught: "TestARuleThatCannotBeServedAsItIsWrittenAnswers500",
		old: `			rule.rule = nginx.Rule{Status: http.StatusInternalServerError}
`,
		new: ``,
	}, {
		name: "the longer timeout counts", says: filtersHold, file: gatewayTranslation + "routerules.go",
		caught: "TestFiltersAndTimeoutsOfARule",
		old:    `timeout < shortest {`,
		new:    `timeout > shortest {`,
	}, {
		name: "a header may have two lines", says: filtersHold, file: gatewayTranslation + "filters.go",
		caught: "TestARuleThatCannotBeServedAsItIsWrittenAnswers500",
		old:    ` || strings.ContainsFunc(h.Value, control) {`,
		new:    ` || strings.ContainsFunc("", control) {`,
	}, {
		name: "clients whose certificates are to be checked are served unchecked", says: filtersHold, file: gatewayTranslation + "listeners.go",
		caught: "TestClientsWhoseCertificatesCannotBeCheckedAreNotServed",
		old:    `	case l.tls && validatesClients(g.Spec.TLS, of.Port):`,
		new:    `	case l.tls && validatesClients(nil, of.Port):`,
	}, {
		name: "two Gateways have one address", says: ownAddresses, file: gatewayTranslation + "addresses.go",
		caught: "TestAddressesOfGateways",
		old:    ` || taken[a] {`,
		new:    ` {`,
	}, {
		name: "a Gateway loses its address to an older one", says: ownAddresses, file: gatewayTranslation + "addresses.go",
		caught: "TestAddressesOfGateways",
		old: `	for _, a := range g.observed.Status.Addresses { // it keeps the one that it has
		if take(g, a.Value) {
			return
		}
	}
`,
		new: ``,
	}, {
		name: "what nginx refuses is programmed", says: apiReasons, file: gatewayTranslation + "gateways.go",
		caught: "TestWhatNginxRefusesIsServedAsItWasBefore",
		old:    `	case refused != "":`,
		new:    `	case refused == "?":`,
	}, {
		name: "a connection for one listener reaches another one", says: narrowest, file: "examples/gateway/nginx/servers.go",
		caught: "TestAConnectionForOneListenerReachesNoOther",
		old: `			if s.TLS && s.Listener != "" {
				w.line(`,
		new: `			if s.TLS && s.Listener != "" && s.Host == "" {
				w.line(`,
	},
}
