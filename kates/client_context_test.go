package kates

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/client/kubeconfig"
)

// TestWhatAContextNamesAndIsNotThereIsAnError: client-go makes a client without credentials of a
// user that is missing.
func TestWhatAContextNamesAndIsNotThereIsAnError(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	context := func(context, cluster, user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {" + context + "}}]\n" +
			`clusters: [{name: it, cluster: {` + cluster + "}}]\nusers: [{name: me, user: {" + user + "}}]\n"
	}
	const named, server = "cluster: it, user: me", `server: "https://it.example.com"`
	for message, content := range map[string]string{
		`there is no user "you", which context "c" names`:      context("cluster: it, user: you", server, ""),
		`there is no cluster "other", which context "c" names`: context("cluster: other, user: you", server, ""),
		`there is no cluster "", which context "c" names`:      context("user: me", server, ""),
		"no server":                                                    context(named, "", ""),
		"certificate-authority " + gone:                                context(named, server+", certificate-authority: "+gone, ""),
		"client-cert " + gone:                                          context(named, server, "client-certificate: "+gone+", client-key: "+gone),
		"client-key must be specified for me":                          context(named, server, "client-certificate-data: eA=="),
		"open " + gone + ": no such file":                              context(named, server, "tokenFile: "+gone),
		"command must be specified for me":                             context(named, server, "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"),
		`users[0].user.token is a number, want a string: put it in q`:  context(named, server, "token: 1234567"),
		`users[0].user.token is a boolean, want a string: YAML reads`:  context(named, server, "token: yes"),
		`users[0].user.as-groups[0] is a number, want a string: put`:   context(named, server, "as-groups: [1234567]"),
		`users[0].user.client-key-data is a string, want base64`:       context(named, server, "client-key-data: sesame!"),
		`clusters[0].cluster.insecure-skip-tls-verify is a string, wa`: context(named, server+`, insecure-skip-tls-verify: "true"`, ""),
		`contexts[0].context.namespace is a number, want a string: pu`: context(named+", namespace: 1234567", server, ""),
	} {
		path := kubeconfigs(t, content)[0]
		_, _, err := ClientConfig{}.load()
		assert.ErrorContains(t, err, message)
		if err != nil && !strings.Contains(message, "gone") {
			assert.ErrorContains(t, err, "load kubeconfig from "+path)
			assert.NotContains(t, err.Error(), "1234567")
			assert.NotContains(t, err.Error(), "sesame")
		}
	}
	kubeconfigs(t, context("cluster: it", server, ""))
	cfg, _, err := ClientConfig{}.load()
	require.NoError(t, err, "a context may name no user: a proxy may add credentials")
	assert.Equal(t, "https://it.example.com", cfg.Host)
}

func TestAUserOrCredentialsFlagStandsInForAUser(t *testing.T) {
	const content = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: it, user: you}}]\n" +
		"clusters: [{name: it, cluster: {server: \"https://it.example.com\"}}]\nusers: [{name: me, user: {token: sesame}}]\n"
	for flag, token := range map[string]string{"--user=me": "sesame", "--token=open": "open", "--as=jane": "", "--user=nobody": ""} {
		kubeconfigs(t, content)
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		load := kubeconfig.BindFlags(flags)
		require.NoError(t, flags.Parse([]string{flag}))
		cfg, _, err := load()
		if token == "" {
			assert.ErrorContains(t, err, map[string]string{"--as=jane": `there is no user "you"`, "--user=nobody": `"nobody" does not exist`}[flag])
			continue
		}
		require.NoError(t, err, flag)
		assert.Equal(t, token, cfg.BearerToken)
	}
}
