package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

// placeVariable tells the process of lackingTestsFail where the gateway is.
const placeVariable = "KATES_CONFORMANCE_PLACE"

// lackingTestsFail runs the tests of the features that the gateway lacks, in a process of their
// own, since they fail. One that passes is an error of the table.
func lackingTestsFail(t *testing.T, at place) {
	text, err := json.Marshal(at)
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOfFeaturesThatAreLacking$", "-test.v", "-test.timeout=30m")
	child.Env = append(os.Environ(), placeVariable+"="+string(text))
	out, _ := child.CombinedOutput() // it fails
	results := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^    --- (\w+): \w+/(\w+) `).FindAllStringSubmatch(string(out), -1) {
		results[found[2]] = found[1]
	}
	for _, test := range tests.ConformanceTests {
		if fails(test) && !assert.Equal(t, "FAIL", results[test.ShortName],
			"%s: if it passes, the table has to say so", test.ShortName) {
			t.Log(string(out[max(0, len(out)-4000):]))
		}
	}
}

// TestOfFeaturesThatAreLacking is run by lackingTestsFail, and does nothing otherwise. It waits
// for each thing for some seconds only, since the wait is in vain.
func TestOfFeaturesThatAreLacking(t *testing.T) {
	text, here := os.LookupEnv(placeVariable)
	if !here {
		return
	}
	var at place
	require.NoError(t, json.Unmarshal([]byte(text), &at))
	options := suiteOptions(t, at)
	const short = 3 * time.Second
	times := &options.TimeoutConfig
	times.GatewayMustHaveAddress, times.GatewayMustHaveCondition, times.GatewayStatusMustHaveListeners = short, short, short
	times.GatewayListenersMustHaveConditions, times.HTTPRouteMustHaveCondition, times.RouteMustHaveParents = short, short, short
	times.MaxTimeToConsistency, times.LatestObservedGenerationSet, times.DefaultTestTimeout = short, short, 2*short
	options.RoundTripper = &mapped{&roundtripper.DefaultRoundTripper{TimeoutConfig: *times}, at.Ports}
	runSuite(t, options, fails)
}

// fails reports whether a test is run and has to fail.
func fails(test suite.ConformanceTest) bool {
	_, run := lacks(test)
	return run && !runs(test)
}
