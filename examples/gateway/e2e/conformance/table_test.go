package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates/katestest"
)

// lacking says why the gateway has no such feature. The tests of these are run, too: one that
// passes is an error, since the feature may be there then.
var lacking = map[features.FeatureName]string{
	features.SupportGatewayFrontendClientCertificateValidation:                 "certificates of clients are not checked; a listener that asks for that is not served",
	features.SupportGatewayFrontendClientCertificateValidationInsecureFallback: "certificates of clients are not checked; a listener that asks for that is not served",
	features.SupportGatewayInfrastructure:                                      "there is no infrastructure of a Gateway's own that could have labels",
	features.SupportHTTPRouteBackendProtocolH2C:                                "nginx speaks HTTP/1.1 to endpoints (HTTP/2 with gRPC alone)",
	features.SupportHTTPRouteCORS:                                              "the filter is not built; such a rule answers 500 and says so",
	features.SupportHTTPRouteRequestMirror:                                     "the filter is not built; such a rule answers 500 and says so",
	features.SupportHTTPRouteRequestMultipleMirrors:                            "the filter is not built; such a rule answers 500 and says so",
	features.SupportHTTPRouteRequestPercentageMirror:                           "the filter is not built; such a rule answers 500 and says so",
	features.SupportHTTPRouteRetry:                                             "the field is of the experimental channel; the settings have other endpoints tried",
}

// otherKinds are the features of kinds that the gateway does not read.
var otherKinds = map[features.FeatureName]string{
	features.SupportBackendTLSPolicy: "BackendTLSPolicy", features.SupportGRPCRoute: "GRPCRoute",
	features.SupportListenerSet: "ListenerSet", features.SupportMesh: "a mesh",
	features.SupportTCPRoute: "TCPRoute", features.SupportTLSRoute: "TLSRoute", features.SupportUDPRoute: "UDPRoute",
}

// alone are tests that pass though the gateway lacks a feature of theirs: other tests of it fail.
var alone = []string{"GatewayInvalidParametersRef"}

// supported are the features that the GatewayClass says the gateway has.
var supported = sync.OnceValue(func() sets.Set[features.FeatureName] {
	ours := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: translate.Controller}}
	desired := translate.Translate(&translate.Snapshot{GatewayClasses: []*gatewayv1.GatewayClass{ours}}, translate.Options{})
	all := sets.New[features.FeatureName]()
	for _, f := range desired.Reports[0].Status.(*gatewayv1.GatewayClassStatus).SupportedFeatures {
		all.Insert(features.FeatureName(f.Name))
	}
	return all
})

// runs reports whether a test has to pass.
func runs(test suite.ConformanceTest) bool {
	return supported().HasAll(test.Features...) || slices.Contains(alone, test.ShortName)
}

// lacks says why a test does not pass, and whether it is run to see that.
func lacks(test suite.ConformanceTest) (why string, run bool) {
	for _, f := range test.Features {
		if kind, is := otherKinds[f]; is {
			return "needs " + kind, false
		}
	}
	var all []string
	for _, f := range test.Features {
		if reason, is := lacking[f]; is && !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	return strings.Join(all, "; "), true
}

const preamble = `# Conformance with the Gateway API

The gateway passes all core tests for Gateways and HTTPRoutes of the Gateway API v1.6.3, standard
channel (sigs.k8s.io/gateway-api/conformance), and those of the extended features below. The tests
run with the program itself, a real nginx and a real API server. This file is checked by them: a test
below that fails is an error, and so is one that passes though it is said not to.

    go -C examples/gateway/e2e test -count=1 ./conformance
`

// TestTheTableSaysWhichTestsPass writes CONFORMANCE.md, with -update.
func TestTheTableSaysWhichTestsPass(t *testing.T) {
	var pass, fail, others []string
	count := map[string]int{}
	for _, test := range tests.ConformanceTests {
		names := []string{}
		for _, f := range test.Features {
			names = append(names, string(f))
		}
		why, probed := lacks(test)
		switch {
		case runs(test):
			pass = append(pass, fmt.Sprintf("| %s | %s |", test.ShortName, strings.Join(names, ", ")))
		case !probed:
			count[why]++
		default:
			assert.NotEmpty(t, why, "no reason why the gateway lacks a feature of %s: %s", test.ShortName, names)
			fail = append(fail, fmt.Sprintf("| %s | %s |", test.ShortName, why))
		}
	}
	for why, n := range count {
		others = append(others, fmt.Sprintf("| %s | %d |", why, n))
	}
	text := strings.Builder{}
	for _, part := range []struct {
		title, head string
		rows        []string
	}{
		{fmt.Sprintf("Tests that pass: %d", len(pass)), "| test | features |", pass},
		{fmt.Sprintf("Tests that do not pass: %d", len(fail)), "| test | why |", fail},
		{"Tests of other kinds, which are not run", "| why | tests |", others},
	} {
		slices.Sort(part.rows)
		fmt.Fprintf(&text, "\n## %s\n\n%s\n|---|---|\n%s\n", part.title, part.head, strings.Join(part.rows, "\n"))
	}
	katestest.Golden(t, "../../CONFORMANCE.md", preamble+text.String())
}
