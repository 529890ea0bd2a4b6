package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// The hosts of the attacker have one hash: 31 times a plus n is 31 times c plus 0.
func TestHostsOfOneHashTakeNoRoomOfOthers(t *testing.T) {
	var rules []string
	for i := range 900 {
		label := strings.NewReplacer("0", "an", "1", "c0").Replace(fmt.Sprintf("%010b", i))
		rules = append(rules, rule("z"+strings.Repeat("z", 39)+label+".example.com", to("/", "Prefix", "web")))
	}
	snap := snapshotOf(t, ourClass, webService, ingressOf("victim", "rules:\n"+rules[0]), ingressOf("wild", "rules:\n"+rule("*.example.com", to("/", "Prefix", "web"))),
		ingressOf("zevil", "rules:\n"+strings.Join(rules[1:], "\n")))
	d := Translate(snap, Options{})
	bytes, victim := 0, false
	for _, s := range d.Config.Servers {
		for in, n := range nginx.Buckets(s.Host) {
			if !strings.HasPrefix(in[0], "*") {
				bytes += n
			}
		}
		victim = victim || s.Source.Name == "victim"
	}
	assert.True(t, victim)
	assert.LessOrEqual(t, bytes, nginx.BucketBytes)
	assert.Greater(t, bytes, nginx.BucketBytes-100)
	assert.Empty(t, problemsOf(d, "Ingress", "prod/victim"))
	assert.Empty(t, problemsOf(d, "Ingress", "prod/wild"))
	assert.Contains(t, problemsOf(d, "Ingress", "prod/zevil")[0], "TooManyHosts: host")
}
