"""Planning problems and a plan."""

from __future__ import annotations

BLOCKS = """(define (domain blocks) (:requirements :strips :typing)
  (:types block) (:predicates (on ?x ?y - block) (table ?x - block) (clear ?x - block) (empty) (holding ?x - block))
  (:action pick-up :parameters (?x - block) :precondition (and (clear ?x) (table ?x) (empty))
    :effect (and (not (table ?x)) (not (clear ?x)) (not (empty)) (holding ?x)))
  (:action put-down :parameters (?x - block) :precondition (holding ?x)
    :effect (and (not (holding ?x)) (clear ?x) (empty) (table ?x)))
  (:action stack :parameters (?x ?y - block) :precondition (and (holding ?x) (clear ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (empty) (on ?x ?y)))
  (:action unstack :parameters (?x ?y - block) :precondition (and (on ?x ?y) (clear ?x) (empty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (empty)) (not (on ?x ?y)))))"""

TOWER = """(define (problem tower) (:domain blocks) (:objects a b c - block)
  (:init (on c a) (table a) (table b) (clear c) (clear b) (empty))
  (:goal (and (on a b) (on b c))))"""

REFERENCE = {"domain": BLOCKS, "problem": TOWER}

PLAN = ["(unstack c a)", "(put-down c)", "(pick-up b)", "(stack b c)", "(pick-up a)", "(stack a b)"]

OFFICE = """(define (domain office) (:requirements :adl :fluents :action-costs)
  (:types person thing - object bag box - thing)
  (:constants desk - thing)
  (:predicates (has ?p - person ?t - thing) (in ?a ?b - thing) (open ?t - thing) (tired ?p - person))
  (:functions (load ?p - person) (total-cost) (weight ?t - thing))
  (:action take :parameters (?p - person ?t - (either bag box))
    :precondition (and (not (tired ?p)) (<= (+ (load ?p) (weight ?t)) 10)
                       (forall (?q - person) (imply (has ?q ?t) (= ?q ?p))))
    :effect (and (has ?p ?t) (increase (load ?p) (weight ?t)) (increase (total-cost) 2)
                 (when (> (load ?p) 4) (tired ?p))))
  (:action rest :parameters (?p - person)
    :precondition (or (tired ?p) (exists (?t - thing) (has ?p ?t)))
    :effect (and (not (tired ?p)) (assign (load ?p) 0) (increase (total-cost) 1)
                 (forall (?t - thing) (when (has ?p ?t) (and (not (has ?p ?t)) (in ?t desk))))))
  (:action toggle :parameters (?t - thing) :precondition (not (= ?t desk))
    :effect (and (when (open ?t) (not (open ?t))) (when (not (open ?t)) (open ?t)))))"""

DAY = """(define (problem day) (:domain office) (:objects ann bob - person red - bag blue - box)
  (:init (= (load ann) 0) (= (load bob) 3)
          (= (weight red) 5) (= (weight blue) 4) (= (weight desk) 9) (= (total-cost) 0))
  (:goal (and (in red desk) (in blue desk) (forall (?p - person) (not (tired ?p))) (open red)))
  (:metric minimize (total-cost)))"""

ERRANDS = {"domain": OFFICE, "problem": DAY}
