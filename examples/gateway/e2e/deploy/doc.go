// Package deploy tests the manifests of the gateway on a real API server: they are valid, the
// program runs with the rights that they give and no others, and it uses each of these.
package deploy
