#include "text/corpus/words.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace filigree::corpus {
namespace {

constexpr std::string_view kMale[] = {
    "James",    "John",    "Robert",    "Michael",   "William", "David",   "Richard",  "Joseph",
    "Thomas",   "Charles", "Daniel",    "Matthew",   "Anthony", "Mark",    "Donald",   "Steven",
    "Paul",     "Andrew",  "Joshua",    "Kenneth",   "Kevin",   "Brian",   "George",   "Edward",
    "Ronald",   "Timothy", "Jason",     "Jeffrey",   "Jacob",   "Gary",    "Nicholas", "Eric",
    "Jonathan", "Stephen", "Larry",     "Justin",    "Scott",   "Brandon", "Benjamin", "Samuel",
    "Gregory",  "Frank",   "Alexander", "Raymond",   "Patrick", "Jack",    "Dennis",   "Jerry",
    "Tyler",    "Aaron",   "Henry",     "Adam",      "Peter",   "Nathan",  "Zachary",  "Walter",
    "Kyle",     "Harold",  "Carl",      "Jeremy",    "Keith",   "Roger",   "Gerald",   "Ethan",
    "Arthur",   "Sean",    "Lawrence",  "Joe",       "Noah",    "Albert",  "Bruce",    "Gabriel",
    "Alan",     "Juan",    "Wayne",     "Roy",       "Ralph",   "Eugene",  "Louis",    "Philip",
    "Howard",   "Victor",  "Martin",    "Simon",     "Oliver",  "Leonard", "Oscar",    "Hugo",
    "Felix",    "Leo",     "Edwin",     "Frederick", "Norman",  "Stanley", "Theodore", "Vincent",
    "Ivan",     "Marcus",  "Luke",      "Isaac",     "Caleb",   "Owen",    "Douglas",  "Graham"};

constexpr std::string_view kFemale[] = {
    "Mary",     "Patricia",  "Jennifer",  "Linda",     "Elizabeth", "Barbara",    "Susan",
    "Jessica",  "Sarah",     "Karen",     "Lisa",      "Nancy",     "Betty",      "Sandra",
    "Margaret", "Emily",     "Donna",     "Michelle",  "Carol",     "Amanda",     "Melissa",
    "Deborah",  "Stephanie", "Rebecca",   "Laura",     "Sharon",    "Cynthia",    "Kathleen",
    "Amy",      "Angela",    "Shirley",   "Anna",      "Brenda",    "Pamela",     "Emma",
    "Nicole",   "Helen",     "Samantha",  "Katherine", "Christine", "Rachel",     "Carolyn",
    "Janet",    "Maria",     "Catherine", "Heather",   "Diane",     "Olivia",     "Julie",
    "Joyce",    "Victoria",  "Ruth",      "Lauren",    "Christina", "Joan",       "Evelyn",
    "Judith",   "Andrea",    "Hannah",    "Megan",     "Cheryl",    "Jacqueline", "Martha",
    "Teresa",   "Gloria",    "Janice",    "Ann",       "Kathryn",   "Abigail",    "Sophia",
    "Alice",    "Judy",      "Isabella",  "Julia",     "Grace",     "Amber",      "Denise",
    "Danielle", "Marilyn",   "Beverly",   "Charlotte", "Natalie",   "Diana",      "Doris",
    "Kayla",    "Marie",     "Claire",    "Lucy",      "Ellen",     "Irene",      "Rose",
    "Clara",    "Eleanor",   "Nora",      "Sylvia",    "Audrey",    "Chloe",      "Lily",
    "Molly",    "Paula",     "Vera",      "Wendy",     "Edith",     "Esther",     "Fiona",
    "Harriet"};

constexpr std::string_view kPlaces[] = {
    "store",     "market",      "school",      "park",       "garden",        "library",
    "office",    "station",     "restaurant",  "hospital",   "museum",        "beach",
    "theater",   "airport",     "bakery",      "bank",       "bookshop",      "bridge",
    "cafe",      "castle",      "cave",        "church",     "cinema",        "club",
    "farm",      "fountain",    "gallery",     "gym",        "harbor",        "hotel",
    "house",     "kitchen",     "laboratory",  "lake",       "lighthouse",    "mall",
    "mill",      "pharmacy",    "playground",  "pool",       "river",         "shop",
    "stadium",   "studio",      "supermarket", "temple",     "tower",         "university",
    "pier",      "workshop",    "zoo",         "aquarium",   "barn",          "campsite",
    "chapel",    "circus",      "courthouse",  "dock",       "factory",       "fair",
    "festival",  "gas station", "greenhouse",  "town hall",  "train station", "vineyard",
    "warehouse", "post office", "bus stop",    "school gate"};

constexpr std::string_view kThings[] = {
    "book",      "apple",    "ring",     "letter",   "key",     "ball",     "pen",
    "pencil",    "coin",     "ticket",   "card",     "map",     "camera",   "umbrella",
    "flower",    "cup",      "necklace", "bracelet", "watch",   "scarf",    "hat",
    "coat",      "kite",     "drum",     "guitar",   "violin",  "painting", "photograph",
    "newspaper", "magazine", "sandwich", "cookie",   "cake",    "orange",   "banana",
    "lemon",     "drink",    "snack",    "bone",     "toy",     "doll",     "puzzle",
    "blanket",   "pillow",   "lamp",     "candle",   "lantern", "rope",     "hammer",
    "knife",     "spoon",    "plate",    "wallet",   "phone",   "laptop",   "notebook",
    "present",   "medal",    "trophy",   "teapot",   "mirror",  "comb",     "whistle",
    "compass",   "brush",    "glove",    "bell",     "shell",   "stamp",    "ruler"};

constexpr std::string_view kContainers[] = {
    "box",  "drawer", "basket", "bag",    "suitcase", "cupboard", "chest",  "bucket", "backpack",
    "jar",  "crate",  "safe",   "closet", "cabinet",  "locker",   "barrel", "trunk",  "pot",
    "tin",  "case",   "hamper", "desk",   "wardrobe", "sack",     "purse",  "pouch",  "bowl",
    "cart", "carton", "vase",   "tray",   "folder",   "envelope", "shed",   "tent",   "car"};

constexpr std::string_view kProfessions[] = {
    "teacher",   "doctor",     "lawyer",     "engineer",   "painter",      "singer",
    "dancer",    "writer",     "baker",      "farmer",     "pilot",        "sailor",
    "soldier",   "judge",      "scientist",  "artist",     "musician",     "athlete",
    "swimmer",   "runner",     "leader",     "student",    "friend",       "neighbor",
    "colleague", "driver",     "cook",       "gardener",   "carpenter",    "plumber",
    "dentist",   "surgeon",    "librarian",  "journalist", "photographer", "architect",
    "designer",  "programmer", "accountant", "clerk",      "manager",      "coach",
    "guide",     "translator", "poet"};

constexpr std::string_view kPlainWords[] = {
    "stone",   "river",   "cloud",  "paper",  "green",   "silver", "winter",  "bread",   "horse",
    "table",   "copper",  "maple",  "candy",  "tiger",   "ocean",  "field",   "glass",   "honey",
    "purple",  "velvet",  "rocket", "pepper", "anchor",  "island", "shadow",  "mirror",  "butter",
    "window",  "feather", "garlic", "marble", "cotton",  "dragon", "ember",   "falcon",  "ginger",
    "hollow",  "ivory",   "jungle", "kettle", "ladder",  "magnet", "needle",  "olive",   "pebble",
    "quartz",  "ribbon",  "saddle", "timber", "valley",  "walnut", "yellow",  "zebra",   "acorn",
    "blossom", "cactus",  "desert", "engine", "fossil",  "goblet", "harvest", "iron",    "jacket",
    "kernel",  "lizard",  "meadow", "nickel", "orchid",  "parrot", "rabbit",  "salmon",  "thunder",
    "violet",  "wagon",   "beacon", "cedar",  "dolphin", "eagle",  "forest",  "granite", "hazel",
    "igloo",   "jasmine", "lemon",  "monkey", "nutmeg",  "oyster", "planet",  "raven",   "spider",
    "turtle",  "vessel"};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kMale) + std::size(kFemale)> all{};
  std::copy(std::begin(kFemale), std::end(kFemale),
            std::copy(std::begin(kMale), std::end(kMale), all.begin()));
  return all;
}();

}  // namespace

std::span<const std::string_view> male_names() { return kMale; }
std::span<const std::string_view> female_names() { return kFemale; }
std::span<const std::string_view> names() { return kNames; }
std::span<const std::string_view> places() { return kPlaces; }
std::span<const std::string_view> things() { return kThings; }
std::span<const std::string_view> containers() { return kContainers; }
std::span<const std::string_view> professions() { return kProfessions; }
std::span<const std::string_view> plain_words() { return kPlainWords; }

}  // namespace filigree::corpus
