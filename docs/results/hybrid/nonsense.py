"""Queries that no title of the four data sets answers.

    python nonsense.py > nonsense.txt

Every second line is kept back: `measure.py --last` reads these once.
"""

import random

LETTERS = "abcdefghijklmnopqrstuvwxyz"

LANGUAGES = """
wo ist der bahnhof|guten morgen liebe sorgen|zwei brötchen bitte
wie wird das wetter morgen|où est la bibliothèque|je voudrais un café
bonne nuit les petits|quelle heure est il|dónde está la playa
buenos días señora|una mesa para dos|qué hora es|dov'è la stazione
buona sera signora|un caffè per favore|che ora è|gdzie jest dworzec
dzień dobry pani|poproszę dwie kawy|która godzina|missä on rautatieasema
hyvää huomenta|kaksi kahvia kiitos|mitä kello on|var ligger stationen
god morgon allihopa|två kaffe tack|vad är klockan|onde fica a estação
bom dia senhora|dois cafés por favor|que horas são|hol van az állomás
jó reggelt kívánok|két kávét kérek|hány óra van|istasyon nerede
günaydın efendim|iki kahve lütfen|saat kaç|где находится вокзал
доброе утро всем|два кофе пожалуйста|который час
駅はどこですか|おはようございます
コーヒーを二つください|今何時ですか|火车站在哪里|早上好各位|请给我两杯咖啡
""".replace("\n", "|").strip("|").split("|")  # fmt: skip

FIRST = """
mortgage chemotherapy divorce pension liposuction baptism tuition alimony
orthodontist bankruptcy vineyard ballet yoga opera obituary kindergarten
horoscope gluten vaccine honeymoon
""".split()
SECOND = """
consultation near amsterdam|refinancing rates|appointment next tuesday
schedule for beginners|recipe with saffron|symptoms in toddlers
lawyer fees|insurance premium
""".strip().replace("\n", "|").split("|")  # fmt: skip


def letters(draw: random.Random) -> str:
    """Returns one to three words of random letters."""
    words = [
        "".join(draw.choices(LETTERS, k=draw.randint(3, 9)))
        for _ in range(draw.randint(1, 3))
    ]
    return " ".join(words)


def main() -> None:
    """Prints 200 queries: letters, other languages, other trades."""
    draw = random.Random(7)
    trades = [f"{first} {second}" for first in FIRST for second in SECOND]
    queries = [letters(draw) for _ in range(75)]
    queries += LANGUAGES[:50]
    queries += draw.sample(trades, 75)
    draw.shuffle(queries)
    print("\n".join(queries))


if __name__ == "__main__":
    main()
