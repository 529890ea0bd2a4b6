package nginx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests attack nginx' tables of hosts: many hosts have one hash.
func TestNginxTakesHostsThatFillABucketAndNoMore(t *testing.T) {
	n := open(t, nil)
	for _, form := range []string{"%s.example.com", "*.%s.example.com"} {
		var servers []Server
		total := 0
		for i := 0; ; i++ {
			label := strings.Repeat("z", 38) + strings.NewReplacer("0", "an", "1", "c0").Replace(fmt.Sprintf("%011b", i))
			host := fmt.Sprintf(form, label)
			for in, bytes := range Buckets(host) {
				if strings.Contains(in[1], label) {
					total += bytes
				}
			}
			s := n.secure(host)
			if servers = append(servers, s); total > BucketBytes {
				break
			}
		}
		check := func(servers []Server) string {
			message, err := n.check(t.Context(), Render(&Config{Servers: servers}, n.render).Text)
			require.NoError(t, err)
			return message
		}
		assert.Empty(t, check(servers[:len(servers)-1]), form)
		more := servers[0]
		for i := range 3 {
			more.Host = fmt.Sprintf(form, strings.Repeat("z", 38)+strings.NewReplacer("0", "an", "1", "c0").Replace(fmt.Sprintf("%011b", len(servers)+i)))
			servers = append(servers, more)
		}
		assert.Contains(t, check(servers), "could not build", form)
	}
}
