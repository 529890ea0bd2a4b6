// Package controller reconciles: it calls a function for each object of a kind, with what belongs to it, whenever that changes.
package controller
